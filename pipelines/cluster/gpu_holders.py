"""Who holds which GPU: of the machines of a cluster, as Kubernetes tells, or of this one, as localpachd leases them."""

from dataclasses import dataclass

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct

from pipelines.client.connection import Connection
from pipelines.cluster import kubernetes

_CALL = "/localpachd.Debug/ListGpus"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds GPUs: the pipeline ("" for what is none of Pachyderm's), its pod or worker, and how many of them."""

    pipeline: str
    worker: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with GPUs: how it stands, the kind of its GPUs where that is known, and how many there are."""

    name: str
    status: str
    product: str
    total: int
    holders: tuple[Holder, ...]

    @property
    def allocated(self) -> int:
        """How many of them are held."""
        return sum(each.gpus for each in self.holders)


def nodes(connection: Connection) -> list[Node]:
    """Every machine with GPUs that the server's pipelines can run on; a localpachd's is one, with GPUs or without.
    Raises LookalikeError where neither localpachd nor a Kubernetes cluster answers."""
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
    """The machine of a localpachd with its leases; None where the server is none."""
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
