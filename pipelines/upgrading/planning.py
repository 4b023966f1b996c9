"""The plan of an upgrade: the deployed pipelines of ours beside the installed specifications. Changes nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.deploying import deployment, imagesizes, partsizes, retired
from pipelines.client.deploying.deployment import ANNOTATION
from pipelines.client.deploying.imagesizes import IMAGE_SIZE, SPECIFIED
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.explaining.measuring import takeover
from pipelines.specifications import drafts, optional, reading
from pipelines.specifications.drafts import Draft, Patch
from pipelines.specifications.reading import HERE
from pipelines.upgrading import comparing, documents, merging, records
from pipelines.upgrading.comparing import Step
from pipelines.upgrading.merging import Merged

_ENV = ("transform", "env")


@dataclass(frozen=True, slots=True)
class Plan:
    """steps: for each pipeline, upstream first. drafts: of what is sent, to be checked. record: the way back that the
    sent pipelines get, or, on the way back, the one that is taken."""

    steps: tuple[Step, ...]
    drafts: tuple[Draft, ...]
    record: records.Record

    @property
    def sent(self) -> list[Step]:
        """The steps that change something on the server."""
        return [step for step in self.steps if step.is_sent or step.change in ("deleted", "retired")]


def plan(
    connection: Connection,
    there: Mapping[str, Any],
    installed: Sequence[Draft],
    asked: Sequence[Draft],
    as_written: Collection[str] = (),
) -> Plan:
    """The upgrade of the deployed pipelines, by name with details. installed: all specifications as in their files.
    asked: the same with the overlays and settings of the command. as_written: the pipelines that keep no choice of
    their library. Raises LookalikeError if there is nothing of ours, or for choices that no merge can keep."""
    wanted = {
        draft.name: (draft, on_top)
        for draft, on_top in zip(installed, asked, strict=True)
        if draft.name in there or not optional.group(draft.path)
    }
    if not wanted.keys() & there.keys():
        raise LookalikeError("none of these pipelines is deployed here: nothing to upgrade; see `lookalike deploy`")
    found = {
        name: Merged(on_top, (), ()) if name in as_written else merging.merged(draft, on_top, there[name])
        for name, (draft, on_top) in wanted.items()
        if name in there
    }
    _check_conflicts(found)
    sent = {name: each.draft for name, each in found.items()}
    new = _new({name: pair for name, pair in wanted.items() if name not in there}, sent, wanted)
    found |= {name: _with_segments(draft, wanted[name], there, name in as_written) for name, draft in new.items()}
    sent = {name: each.draft for name, each in found.items()}
    steps = []
    for spec in reading.ordered(draft.spec() for draft in sent.values()):
        request = deployment.request_of(connection, spec)
        _keep_parts(request, wanted[spec.name][0])
        if spec.name not in there:
            steps.append(Step(spec.name, "new", kept=found[spec.name].kept, request=request))
            continue
        info = there[spec.name]
        request.update = True
        _keep_size(request, info, wanted[spec.name][0])
        request.reprocess = deployment.has_other_code(request, info)
        steps.append(comparing.compared(info, request, request.reprocess, found[spec.name].kept))
    known = {draft.name for draft in installed}
    ours = (name for name, info in there.items() if ANNOTATION in info.details.metadata.annotations)
    steps += [_not_installed(name, there) for name in sorted(ours) if name not in known]
    before = {step.pipeline: step.spec_commit for step in steps if step.is_sent or step.change == "retired"}
    record = records.following(there.values(), before)
    for step in steps:
        if step.is_sent:
            records.write(step.request, record)
    return Plan(tuple(steps), tuple(sent[step.pipeline] for step in steps if step.is_sent), record)


def behind(installed: Sequence[Draft]) -> list[str]:
    """In words, the specifications of a directory of a team's own that name another version of a stage than those that
    lookalike ships, or one that it has retired."""
    shipped = {path.stem: path for path in optional.files(HERE)}
    gone = [
        f"{draft.path} is of a pipeline that lookalike no longer has, since {retired.SUCCESSORS[draft.name]} writes "
        "its output: delete the file"
        for draft in installed
        if comparing.code(draft.document).rpartition("-")[0] == draft.name in retired.SUCCESSORS
    ]
    return gone + [
        f"{draft.path} names {stage}, and this lookalike ships {newer}: bring the file up to date to upgrade that"
        for draft in installed
        if draft.name in shipped
        and (stage := comparing.code(draft.document))
        != (newer := comparing.code(drafts.read(shipped[draft.name]).document))
        and stage
    ]


def _check_conflicts(found: Mapping[str, Merged]) -> None:
    for name, each in found.items():
        if each.conflicts:
            raise LookalikeError(
                f"{name}: its {' and '.join(each.conflicts)} is neither the installed one nor known to be of an "
                "overlay: repeat the overlays of its deployment with --overlay, or take the installed one with "
                f"--as-written {name}; nothing was changed"
            )


def _new(
    wanted: Mapping[str, tuple[Draft, Draft]], sent: Mapping[str, Draft], all_: Mapping[str, tuple[Draft, Draft]]
) -> dict[str, Draft]:
    """The pipelines that are not there, where and with what their neighbours will run."""
    base = {name: all_[name][0] for name in sent}
    will_run = {name: _as_info(draft) for name, draft in sent.items()}
    return {name: takeover.as_deployed(on_top, base, will_run) for name, (_, on_top) in wanted.items()}


def _with_segments(draft: Draft, pair: tuple[Draft, Draft], there: Mapping[str, Any], as_written: bool) -> Merged:
    """A new pipeline with the segments that the library has: an earlier version has them in another pipeline. The
    command prevails. pair: its specification as it is in its file, and with the settings of the command."""
    stated, asked = str(pair[0].get(*_ENV, partsizes.DIGITS, default="")), partsizes.DIGITS in pair[1].settings
    origin = partsizes.origin(draft.name, draft.get(*_ENV, default={}), there)
    if origin is None or as_written or asked:
        return Merged(draft, (), ())
    has = str(partsizes.numbers([origin.details]).segment_digits)
    if has == stated:
        return Merged(draft, (), ())
    patch = Patch({"transform": {"env": {partsizes.DIGITS: has}}})
    return Merged(draft.patched(patch), (f"{partsizes.DIGITS}={has}",), ())


def _as_info(draft: Draft) -> Any:
    details = json_format.MessageToDict(draft.spec().request())
    info = pps_pb2.PipelineInfo()
    json_format.ParseDict(details, info.details, ignore_unknown_fields=True)
    return info


def _not_installed(name: str, there: Mapping[str, Any]) -> Step:
    """The step of a pipeline of ours without a specification: a retired one is deleted, unless others read it."""
    commit = there[name].spec_commit.id
    if name not in retired.found(there):
        return Step(name, "unused", spec_commit=commit)
    readers = sorted(each for each, info in there.items() if name in comparing.repos(info.details.input))
    return Step(name, "unused" if readers else "retired", kept=tuple(readers), spec_commit=commit)


def _keep_size(request: Any, info: Any, installed: Draft) -> None:
    """Marks a size of pictures that stays though the installed specification states another one, so that deployments
    keep it too. A size that an overlay or `--set` chose is no different from other variables."""
    specified = installed.get(*_ENV, default={}).get(IMAGE_SIZE, "")
    now = request.transform.env.get(IMAGE_SIZE, "")
    if not now or now == specified or now != info.details.transform.env.get(IMAGE_SIZE):
        return
    before = (documents.written(info) or {}).get("transform", {}).get("env", {}).get(IMAGE_SIZE)
    if SPECIFIED in info.details.metadata.annotations or before == now:
        imagesizes.mark(request, specified)


def _keep_parts(request: Any, installed: Draft) -> None:
    """Marks sizes of parts and segments that differ from those of the installed specification, so that deployments keep
    them: to go back by mistake would compute the whole library again, from preprocess or from partition on."""
    env = installed.get(*_ENV, default={})
    names = [name for name in partsizes.NAMES if name in request.transform.env]
    stated = {name: str(env.get(name, "")) for name in names if request.transform.env[name] != env.get(name)}
    if stated:
        partsizes.mark(request, stated)
