"""The preflight of a deployment: the server, its Kubernetes cluster and the registries queried; nothing is changed."""

from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Any

import grpc
from python_pachyderm.proto.v2.enterprise import enterprise_pb2

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import gpu_holders, kube_client, obstacles, registries
from pipelines.cluster.capacity import ClusterNode, PodRequests, ResourceQuota, pod_requests
from pipelines.cluster.obstacles import ClusterState
from pipelines.errors import LookalikeError
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, Flaw, FlawPlace


def find_obstacles(connection: Connection, drafts: Sequence[SpecDraft]) -> list[Finding]:
    """The obstacles for the specifications. Where the cluster cannot be asked, that is the finding. None for
    localpachd, which takes the machine for the image and runs on the CPU where there is no GPU."""
    if gpu_holders.local_leases(connection) is not None:
        return []
    version = connection.client.get_remote_version()
    here = FlawPlace(None)
    found = [Finding(flaw, "", here) for flaw in obstacles.check_version((version.major, version.minor))]
    there = ProjectJobs(connection).pipelines()
    names = {draft.name for draft in drafts}
    if (version.major, version.minor) < obstacles.UNLIMITED and not _licensed(connection):
        everywhere = {info.pipeline.name for info in connection.client.list_pipeline(details=False)}
        found += [Finding(flaw, "", here) for flaw in obstacles.check_number(everywhere, names - there.keys())]
    try:
        told = kube_client.ask("capacity", connection.namespace)
        if not told["pachyderm"]:
            raise LookalikeError(
                f"kubectl's cluster has no Pachyderm in the namespace {told['namespace']}: choose another "
                "kubectl context, or name the namespace in pachctl's"
            )
    except LookalikeError as error:
        why = f"unchecked: whether the cluster has the nodes, GPUs, images and quotas that this needs: {error}"
        return [*found, Finding(Flaw.note("cluster", (), why), "", here)]
    temporary = {name for name, info in there.items() if info.details.autoscaling}
    known = ClusterState(
        [ClusterNode(**each) for each in told["nodes"]],
        [ResourceQuota(**each) for each in told["quotas"]],
        cache(registries.ask),
        _held(told["pods"], {f"{connection.project}/{name}" for name in names | temporary}),
    )
    return [*found, *obstacles.check(known, drafts, frozenset(names - there.keys()))]


def _licensed(connection: Connection) -> bool:
    """Whether the server has an enterprise key, and so no limit of the number of pipelines."""
    try:
        return bool(connection.client.get_enterprise_state().state == enterprise_pb2.ACTIVE)
    except grpc.RpcError:  # a server that does not say refuses by itself
        return True


def _held(pods: Sequence[Mapping[str, Any]] | None, replaced: Set[str]) -> list[PodRequests] | None:
    """The resources of pods, without those of pipelines that are replaced or give them back."""
    if pods is None:
        return None
    return [PodRequests(each["node"], pod_requests(each)) for each in pods if each["pipeline"] not in replaced]
