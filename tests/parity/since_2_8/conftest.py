"""The fixture of the calls that came after 2.7."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import grpc
import pytest

from tests.parity.since_2_8.calls import RpcClient
from tests.servers import Pachd


@pytest.fixture(scope="session")
def rpc(pachd: Pachd) -> Iterator[RpcClient]:
    """A client of the calls since 2.8; skips where the server is a Pachyderm without them."""
    with grpc.insecure_channel(urlsplit(pachd.address).netloc) as channel:
        client = RpcClient(channel)
        try:
            client.call("pps_v2.API/GetClusterDefaults", "Empty", "ClusterDefaults")
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                pytest.skip("the server is a Pachyderm older than 2.8")
            raise
        yield client
