"""The holders of GPUs, and the workers that wait for one: on the nodes of a cluster, from Kubernetes, or on this
machine, from localpachd's leases."""

from dataclasses import dataclass

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct

from pipelines.client.server.connection import Connection
from pipelines.cluster import kube_client

_CALL = "/localpachd.Debug/ListGpus"


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """A holder of GPUs: the pipeline ("" outside Pachyderm), its pod or worker, and the number of GPUs."""

    pipeline: str
    worker: str
    gpus: int


@dataclass(frozen=True, slots=True)
class GpuMachine:
    """A machine with GPUs: its status, the model of its GPUs if known, and their number."""

    name: str
    status: str
    product: str
    total: int
    holders: tuple[GpuHolder, ...]

    @property
    def allocated(self) -> int:
        """The number of GPUs that are held."""
        return sum(each.gpus for each in self.holders)


@dataclass(frozen=True, slots=True)
class PendingWorker:
    """A worker without a node that requests GPUs: its pipeline, and whether the cluster adds a node for it."""

    pipeline: str
    node_coming: bool


@dataclass(frozen=True, slots=True)
class GpuHoldings:
    """The machines with GPUs, and the workers of a cluster that have none yet."""

    nodes: list[GpuMachine]
    pending: tuple[PendingWorker, ...] = ()


def read(connection: Connection) -> GpuHoldings:
    """Every machine with GPUs on which the server's pipelines can run; localpachd's machine always counts. Raises
    LookalikeError if neither localpachd nor a Kubernetes cluster answers."""
    leases = local_leases(connection)
    return of_cluster() if leases is None else GpuHoldings([leases])


def of_cluster() -> GpuHoldings:
    """The holdings in the cluster of kubectl's context. Raises LookalikeError if it does not answer."""
    told = kube_client.ask("holdings")
    found = [
        GpuMachine(**each, holders=tuple(_holder(pod) for pod in told["pods"] if pod["node"] == each["name"]))
        for each in told["nodes"]
    ]
    pending = [PendingWorker(pod["pipeline"], pod["node_coming"]) for pod in told["pods"] if not pod["node"]]
    return GpuHoldings(sorted(found, key=lambda node: node.name), tuple(each for each in pending if each.pipeline))


def local_leases(connection: Connection) -> GpuMachine | None:
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
    held = tuple(GpuHolder(str(each["holder"]), f"GPU {each['name']}", 1) for each in devices if each["holder"])
    return GpuMachine(str(reply["machine"]), "Ready", "", len(devices), held)


def _holder(pod: dict[str, object]) -> GpuHolder:
    return GpuHolder(str(pod["pipeline"]), f"{pod['namespace']}/{pod['name']}", int(str(pod["gpus"])))
