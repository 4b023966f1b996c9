"""The plan of an upgrade: the deployed pipelines of ours beside the installed specifications; and that of the way back,
to the versions that ran before. Changes nothing."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.analysis.measurement import inherited_settings
from pipelines.client.deployment import deployment, image_sizes, part_sizes
from pipelines.client.deployment.deployment import DEPLOYED_BY, UPGRADE
from pipelines.client.deployment.image_sizes import IMAGE_SIZE, SPECIFIED
from pipelines.client.pipeline_owner import is_own
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS, deployed_request, repos_read
from pipelines.upgrades import spec_documents, spec_merge, upgrade_steps
from pipelines.upgrades.spec_merge import MergedSpec
from pipelines.upgrades.upgrade_steps import UpgradeStep
from stages.datum.text_format import enumerated

_ENV = ("transform", "env")


@dataclass(frozen=True, slots=True)
class UpgradeRecord:
    """The record of an upgrade, in an annotation of each pipeline that it sent: one that is left is enough for the way
    back, as Pachyderm keeps every version of a pipeline. number: of the upgrade, from 1, as clocks differ. before: the
    commit of the specification that each of its pipelines had, by name; "" for one that it created."""

    number: int
    before: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """steps: for each pipeline, upstream first. drafts: of what is sent, to be checked. record: the way back that the
    sent pipelines get, or, on the way back, the one that is taken."""

    steps: tuple[UpgradeStep, ...]
    drafts: tuple[SpecDraft, ...]
    record: UpgradeRecord

    @property
    def sent(self) -> list[UpgradeStep]:
        """The steps that change something on the server."""
        return [step for step in self.steps if step.is_sent or step.change == "deleted"]

    def new_repos(self, there: Mapping[str, Any]) -> list[str]:
        """The repos of people's files that none of the deployed pipelines reads so far."""
        known = set[str]().union(*(repos_read(info.details.input) for info in there.values()))
        read = set[str]().union(*(repos_read(step.request.input) for step in self.steps if step.is_sent))
        return sorted((read & pipeline_specs.SOURCES.keys()) - known)


def plan(
    connection: Connection,
    there: Mapping[str, Any],
    installed: Sequence[SpecDraft],
    asked: Sequence[SpecDraft],
    as_written: Collection[str] = (),
) -> UpgradePlan:
    """The upgrade of the deployed pipelines, by name with details. installed: all specifications as in their files.
    asked: the same with the overlays and settings of the command. as_written: the pipelines that keep no choice of
    their library. Raises LookalikeError if there is nothing of ours, or for choices that no merge can keep."""
    names = drafts.wanted(installed, there)
    asked = overlays.apply(overlays.implied(names), asked)
    wanted = {each.name: (each, on_top) for each, on_top in zip(installed, asked, strict=True) if each.name in names}
    if not wanted.keys() & there.keys():
        raise LookalikeError("none of these pipelines is deployed here: nothing to upgrade; see `lookalike deploy`")
    if foreign := sorted(name for name in wanted.keys() & there.keys() if not is_own(there[name])):
        raise LookalikeError(
            f"{enumerated(foreign)} in this project {'is' if len(foreign) == 1 else 'are'} not lookalike's: give the "
            f"library a project of its own, or have `lookalike deploy` replace {foreign[0]}; nothing was changed"
        )
    found = {
        name: MergedSpec(on_top, (), ()) if name in as_written else spec_merge.merge_spec(draft, on_top, there[name])
        for name, (draft, on_top) in wanted.items()
        if name in there
    }
    _check_conflicts(found)
    sent = {name: each.draft for name, each in found.items()}
    new = _new({name: pair for name, pair in wanted.items() if name not in there}, sent, wanted)
    sent |= new
    steps = []
    for spec in pipeline_specs.ordered(draft.spec() for draft in sent.values()):
        request = deployment.request_of(connection, spec)
        _keep_parts(request, wanted[spec.name][0])
        if spec.name not in there:
            steps.append(UpgradeStep(spec.name, "new", request=request))
            continue
        info = there[spec.name]
        request.update = True
        _keep_size(request, info, wanted[spec.name][0])
        request.reprocess = deployment.has_other_code(request, info)
        steps.append(upgrade_steps.upgrade_step(info, request, request.reprocess, found[spec.name].kept))
    known = {draft.name for draft in installed}
    steps += [
        UpgradeStep(name, "unused", spec_commit=info.spec_commit.id)
        for name, info in sorted(there.items())
        if is_own(info) and name not in known
    ]
    before = {step.pipeline: step.spec_commit for step in steps if step.is_sent}
    newest = _last_record(there.values())
    record = UpgradeRecord(newest.number + 1 if newest else 1, before)
    for step in steps:
        if step.is_sent:
            _write_record(step.request, record)
    return UpgradePlan(tuple(steps), tuple(sent[step.pipeline] for step in steps if step.is_sent), record)


def outdated_specs(installed: Sequence[SpecDraft]) -> list[str]:
    """In words, the specifications of a directory of a team's own that name another version of a stage than those that
    lookalike ships."""
    shipped = {path.stem: path for path in optional_specs.files(SHIPPED_SPECS)}
    return [
        f"{draft.path} names {stage}, and this lookalike ships {newer}: bring the file up to date to upgrade that"
        for draft in installed
        if draft.name in shipped
        and (stage := upgrade_steps.code(draft.document))
        != (newer := upgrade_steps.code(drafts.read(shipped[draft.name]).document))
        and stage
    ]


def _check_conflicts(found: Mapping[str, MergedSpec]) -> None:
    for name, each in found.items():
        if each.conflicts:
            raise LookalikeError(
                f"{name}: its {' and '.join(each.conflicts)} is neither the installed one nor known to be of an "
                "overlay: repeat the overlays of its deployment with --overlay, or take the installed one with "
                f"--as-written {name}; nothing was changed"
            )


def _new(
    wanted: Mapping[str, tuple[SpecDraft, SpecDraft]],
    sent: Mapping[str, SpecDraft],
    all_: Mapping[str, tuple[SpecDraft, SpecDraft]],
) -> dict[str, SpecDraft]:
    """The pipelines that are not there, where and with what their neighbours will run."""
    base = {name: all_[name][0] for name in sent}
    will_run = {name: _as_info(draft) for name, draft in sent.items()}
    return {name: inherited_settings.as_deployed(on_top, base, will_run) for name, (_, on_top) in wanted.items()}


def _as_info(draft: SpecDraft) -> Any:
    details = json_format.MessageToDict(draft.spec().request())
    info = pps_pb2.PipelineInfo()
    json_format.ParseDict(details, info.details, ignore_unknown_fields=True)
    return info


def _keep_size(request: Any, info: Any, installed: SpecDraft) -> None:
    """Marks a size of pictures that stays though the installed specification states another one, so that deployments
    keep it too. A size that an overlay or `--set` chose is no different from other variables."""
    specified = installed.get(*_ENV, default={}).get(IMAGE_SIZE, "")
    now = request.transform.env.get(IMAGE_SIZE, "")
    if not now or now == specified or now != info.details.transform.env.get(IMAGE_SIZE):
        return
    before = (spec_documents.written(info) or {}).get("transform", {}).get("env", {}).get(IMAGE_SIZE)
    if SPECIFIED in info.details.metadata.annotations or before == now:
        image_sizes.mark(request, specified)


def _keep_parts(request: Any, installed: SpecDraft) -> None:
    """Marks sizes of parts and segments that differ from those of the installed specification, so that deployments keep
    them: to go back by mistake would compute the whole library again, from preprocess or from partition on."""
    env = installed.get(*_ENV, default={})
    names = [name for name in part_sizes.NAMES if name in request.transform.env]
    stated = {name: str(env.get(name, "")) for name in names if request.transform.env[name] != env.get(name)}
    if stated:
        part_sizes.mark(request, stated)


def plan_back(connection: Connection, there: Mapping[str, Any]) -> UpgradePlan:
    """The way back for the deployed pipelines, by name with details. A pipeline that the upgrade created is deleted,
    unless another one reads it. Raises LookalikeError if there was no upgrade, or a version is gone."""
    record = _last_record(there.values())
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
        if found is None:
            raise LookalikeError(
                f"the server no longer has the specification of {name} from before the upgrade (commit {commit}): "
                "nothing was changed; `lookalike deploy` from the older lookalike brings it back"
            )
        steps[name] = _back(connection, record, there[name], found)
    reads = {name: sorted(repos_read(info.details.input)) for name, info in there.items()}
    for name, step in [*steps.items()]:
        readers = sorted(each for each, repos in reads.items() if name in repos and each not in steps)
        if step.change == "deleted" and readers:
            steps[name] = UpgradeStep(name, "unused", kept=tuple(readers), spec_commit=step.spec_commit)
    order = [*TopologicalSorter(reads).static_order()]
    return UpgradePlan(tuple(sorted(steps.values(), key=lambda step: order.index(step.pipeline))), (), record)


def _back(connection: Connection, record: UpgradeRecord, info: Any, version: Any) -> UpgradeStep:
    request = deployed_request(version)
    request.update = True
    request.reprocess = deployment.has_other_code(request, info)
    request.metadata.annotations[DEPLOYED_BY] = deployment.author(connection)
    step = upgrade_steps.upgrade_step(info, request, request.reprocess, change="back")
    if not step.parts and _record_of(info) != record:  # it is back already
        return UpgradeStep(step.pipeline, "unchanged", spec_commit=step.spec_commit)
    return step


def _versions(connection: Connection) -> dict[tuple[str, str], Any]:
    """Every version of every pipeline, by name and the commit of its specification."""
    request = pps_pb2.ListPipelineRequest(history=-1, details=True, projects=[connection.in_project()])
    return {(info.pipeline.name, info.spec_commit.id): info for info in connection.pps.ListPipeline(request)}


def _record_of(info: Any) -> UpgradeRecord | None:
    """The record of a deployed pipeline, given as a PipelineInfo with details; None if it has none that is valid."""
    try:
        found = json.loads(info.details.metadata.annotations.get(UPGRADE, ""))
        return UpgradeRecord(int(found["number"]), {str(name): str(commit) for name, commit in found["before"].items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _last_record(infos: Iterable[Any]) -> UpgradeRecord | None:
    """The record of the last upgrade of these pipelines; None if there was none, or if all of it was taken back."""
    return max((each for each in map(_record_of, infos) if each), key=lambda each: each.number, default=None)


def _write_record(request: Any, record: UpgradeRecord) -> None:
    """Puts a record into a CreatePipelineRequest."""
    text = json.dumps({"number": record.number, "before": dict(record.before)}, sort_keys=True, separators=(",", ":"))
    request.metadata.annotations[UPGRADE] = text
