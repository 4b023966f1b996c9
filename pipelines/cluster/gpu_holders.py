"""The holders of GPUs, and the workers that wait for one: on the nodes of a cluster, from Kubernetes, or on this
machine, from localpachd's leases."""

from dataclasses import dataclass

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct

from pipelines.client.server.connection import Connection
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


@dataclass(frozen=True, slots=True)
class Pending:
    """A worker without a node that requests GPUs: its pipeline, and whether the cluster adds a node for it."""

    pipeline: str
    node_coming: bool


@dataclass(frozen=True, slots=True)
class Holdings:
    """The machines with GPUs, and the workers of a cluster that have none yet."""

    nodes: list[Node]
    pending: tuple[Pending, ...] = ()


def read(connection: Connection) -> Holdings:
    """Every machine with GPUs on which the server's pipelines can run; localpachd's machine always counts. Raises
    LookalikeError if neither localpachd nor a Kubernetes cluster answers."""
    leases = local_leases(connection)
    return of_cluster() if leases is None else Holdings([leases])


def of_cluster() -> Holdings:
    """The holdings in the cluster of kubectl's context. Raises LookalikeError if it does not answer."""
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
    pending = [Pending(pod["pipeline"], pod["node_coming"]) for pod in told["pods"] if not pod["node"]]
    return Holdings(sorted(found, key=lambda node: node.name), tuple(each for each in pending if each.pipeline))


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
