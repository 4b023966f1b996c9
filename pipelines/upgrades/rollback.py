"""The plan of the way back from the last upgrade: the versions of its pipelines that ran before. Changes nothing."""

from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from pipelines.client.deployment import deployment
from pipelines.client.deployment.deployment import DEPLOYED_BY
from pipelines.client.deployment.retired_pipelines import SUCCESSORS
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.upgrades import spec_documents, upgrade_records, upgrade_steps
from pipelines.upgrades.upgrade_plan import UpgradePlan
from pipelines.upgrades.upgrade_records import UpgradeRecord
from pipelines.upgrades.upgrade_steps import UpgradeStep

_ALL = -1


def plan(connection: Connection, there: Mapping[str, Any]) -> UpgradePlan:
    """The way back for the deployed pipelines, by name with details. A pipeline that the upgrade created is deleted,
    unless another one reads it; one that it deleted is not brought back. Raises LookalikeError if there was no upgrade,
    or a version is gone."""
    record = upgrade_records.last(there.values())
    if record is None:
        raise LookalikeError("there is no upgrade to go back from: `lookalike history` lists the deployments")
    versions = _versions(connection)
    steps: dict[str, UpgradeStep] = {}
    for name in (name for name in record.before if name in there):
        commit = record.before[name]
        if not commit:
            steps[name] = UpgradeStep(name, "deleted", spec_commit=there[name].spec_commit.id)
            continue
        found = versions.get((name, commit))
        if found is None and name in SUCCESSORS:  # deleted by the upgrade, and created anew
            continue
        if found is None:
            raise LookalikeError(
                f"the server no longer has the specification of {name} from before the upgrade (commit {commit}): "
                "nothing was changed; `lookalike deploy` from the older lookalike brings it back"
            )
        steps[name] = _back(connection, record, there[name], found)
    reads = {name: upgrade_steps.repos(info.details.input) for name, info in there.items()}
    for name, step in [*steps.items()]:
        readers = sorted(each for each, repos in reads.items() if name in repos and each not in steps)
        if step.change == "deleted" and readers:
            steps[name] = UpgradeStep(name, "unused", kept=tuple(readers), spec_commit=step.spec_commit)
    order = [*TopologicalSorter(reads).static_order()]
    gone = (UpgradeStep(name, "gone") for name in record.before if name in SUCCESSORS and name not in there)
    return UpgradePlan((*sorted(steps.values(), key=lambda step: order.index(step.pipeline)), *gone), (), record)


def _back(connection: Connection, record: UpgradeRecord, info: Any, version: Any) -> UpgradeStep:
    request = spec_documents.request_of(version)
    request.update = True
    request.reprocess = deployment.has_other_code(request, info)
    request.metadata.annotations[DEPLOYED_BY] = deployment.author(connection)
    step = upgrade_steps.upgrade_step(info, request, request.reprocess, change="back")
    if not step.parts and upgrade_records.read(info) != record:  # it is back already
        return UpgradeStep(step.pipeline, "unchanged", spec_commit=step.spec_commit)
    return step


def _versions(connection: Connection) -> dict[tuple[str, str], Any]:
    """Every version of every pipeline, by name and the commit of its specification."""
    stub = pps_pb2_grpc.APIStub(connection.client._channel)
    project = pfs_pb2.Project(name=connection.project)
    request = pps_pb2.ListPipelineRequest(history=_ALL, details=True, projects=[project])
    return {(info.pipeline.name, info.spec_commit.id): info for info in stub.ListPipeline(request)}
