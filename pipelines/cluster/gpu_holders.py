"""The holders of GPUs: on the nodes of a cluster, from Kubernetes, or on this machine, from localpachd's leases."""

from dataclasses import dataclass

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct

from pipelines.client.connection import Connection
from pipelines.cluster import kubernetes

_CALL = "/localpachd.Debug/ListGpus"


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder of GPUs: the pipeline ("" outside Pachyderm), its pod or worker, and the number of GPUs."""

    pipeline: str
    worker: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with GPUs: its status, the model of its GPUs if known, and their number."""

    name: str
    status: str
    product: str
    total: int
    holders: tuple[Holder, ...]

    @property
    def allocated(self) -> int:
        """The number of GPUs that are held."""
        return sum(each.gpus for each in self.holders)


def nodes(connection: Connection) -> list[Node]:
    """Every machine with GPUs on which the server's pipelines can run; localpachd's machine always counts. Raises
    LookalikeError if neither localpachd nor a Kubernetes cluster answers."""
    leases = local_leases(connection)
    if leases is not None:
        return [leases]
    told = kubernetes.holdings()
    found = [
        Node(
            each["name"],
            "Ready" if each["ready"] else "NotReady",
            each["product"],
            each["gpus"],
            tuple(_holder(pod) for pod in told["pods"] if pod["node"] == each["name"]),
        )
        for each in told["nodes"]
    ]
    return sorted(found, key=lambda node: node.name)


def local_leases(connection: Connection) -> Node | None:
    """The machine of a localpachd with its leases; None if the server is not a localpachd."""
    call = connection.client._channel.unary_unary(
        _CALL, request_serializer=Empty.SerializeToString, response_deserializer=Struct.FromString
    )
    try:
        reply = call(Empty())
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return None
        raise
    devices = [dict(each) for each in reply["devices"]]
    held = tuple(Holder(str(each["holder"]), f"GPU {each['name']}", 1) for each in devices if each["holder"])
    return Node(str(reply["machine"]), "Ready", "", len(devices), held)


def _holder(pod: dict[str, object]) -> Holder:
    return Holder(str(pod["pipeline"]), f"{pod['namespace']}/{pod['name']}", int(str(pod["gpus"])))
