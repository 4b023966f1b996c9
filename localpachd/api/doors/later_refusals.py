"""The refusals of Pachyderm 2.12 that differ from those of 2.7, which all rooms raise: one table."""

import grpc


def since_2_12(method: str, code: grpc.StatusCode, text: str) -> tuple[grpc.StatusCode, str]:
    """The status code and text of 2.12 for those of 2.7 with which `method` ("service/Method") was refused."""
    return code, text
