"""Settings of how a pipeline runs: workers, datum sets, services and tolerations."""

from collections.abc import Iterator

from pipelines.checks import inputs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw
from speclang import warm_annotations

NODE_PORTS = range(30000, 32768)
_PORTS = range(1, 65536)
_SERVICE_TYPES = ("NodePort", "ClusterIP", "LoadBalancer")
_REPROCESS = ("until_success", "every_job")
_COMMUNITY_WORKERS = 8
"""The most workers of one pipeline without an enterprise key."""


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Settings that exclude each other, or that make a server or its workers fail."""
    yield from _check_workers(draft)
    yield from _check_datum_sets(draft)
    for at in (("service",), ("spout", "service")):
        if draft.get(*at) is not None:
            yield from _check_service(draft, at)
    if draft.get("service") is not None:
        yield from _check_served(draft)
    yield from _check_warmth(draft)
    reprocess = draft.get("reprocess_spec", default="")
    if reprocess not in ("", *_REPROCESS):
        why = f'"{reprocess}" is neither of the two valid values'
        yield Flaw.error("value", ("reprocess_spec",), why, f"write {' or '.join(_REPROCESS)}")
    for place, toleration in enumerate(draft.get("tolerations", default=())):
        if (toleration.get("operator") or "EMPTY") == "EMPTY":
            why = "has no operator, and Pachyderm does not guess one"
            fix = 'add "operator": "EQUAL", or "EXISTS" for any value'
            yield Flaw.error("toleration", ("tolerations", place), why, fix)


def _check_workers(draft: SpecDraft) -> Iterator[Flaw]:
    workers = draft.number("parallelism_spec", "constant")
    at = ("parallelism_spec", "constant") if workers else ("parallelism_spec",)
    if draft.get("service") is not None:
        if draft.get("parallelism_spec") is not None and workers != 1:
            yield Flaw.error("service", at, "a service has exactly one worker", "write 1")
        if draft.get("autoscaling"):
            why = "a service is never idle, and autoscaling stops it while it has no job"
            yield Flaw.error("service", ("autoscaling",), why, "remove autoscaling")
    elif workers > _COMMUNITY_WORKERS:
        why = f"without an enterprise key, Pachyderm refuses pipelines with more than {_COMMUNITY_WORKERS} workers"
        yield Flaw.note("workers", at, why)
    if draft.get("spout") is not None and draft.get("autoscaling"):
        why = "no commits trigger a spout, so they cannot scale it"
        yield Flaw.error("spout", ("autoscaling",), why, "remove autoscaling")


def _check_datum_sets(draft: SpecDraft) -> Iterator[Flaw]:
    if draft.get("datum_set_spec") is None:
        return
    number, size, per_worker = (draft.number("datum_set_spec", each) for each in ("number", "size_bytes", "per_worker"))
    if not (number or size or per_worker):
        why = "is empty: the worker divides by its per_worker of zero, and its jobs never end"
        yield Flaw.error("datum-sets", ("datum_set_spec",), why, 'write {"number": 100}, or remove it')
    elif per_worker and (number or size):
        why = "has no effect together with number or size_bytes"
        yield Flaw.warning("datum-sets", ("datum_set_spec", "per_worker"), why, "keep one of them")
    for name, value in (("number", number), ("size_bytes", size), ("per_worker", per_worker)):
        if value < 0:
            yield Flaw.error("datum-sets", ("datum_set_spec", name), "is negative", "write 1 or more")


def _check_warmth(draft: SpecDraft) -> Iterator[Flaw]:
    """The annotations by which localpachd keeps processes; clusters ignore them, whatever they say."""
    annotations = draft.get("metadata", "annotations", default={})
    for fault in warm_annotations.faults(annotations):
        yield Flaw.error("warm", ("metadata", "annotations", fault.key), fault.why, fault.fix)
    if warm_annotations.read(annotations) is not None and not draft.get("transform", "datum_batching"):
        why = "has no effect: only processes that ask for their datums can wait for more"
        fix = 'set "datum_batching": true in the transform, or remove it'
        yield Flaw.warning("warm", ("metadata", "annotations", warm_annotations.SECONDS), why, fix)


def _check_service(draft: SpecDraft, at: tuple[str, ...]) -> Iterator[Flaw]:
    kind = draft.get(*at, "type", default="NodePort") or "NodePort"
    inner, outer = (int(draft.number(*at, port)) for port in ("internal_port", "external_port"))
    if kind not in _SERVICE_TYPES:
        why = f'"{kind}" is not a type of service'
        yield Flaw.error("service", (*at, "type"), why, f"write one of {', '.join(_SERVICE_TYPES)}")
    if inner not in _PORTS:
        why = "the port that the program listens on is missing" if not inner else f"{inner} is not a port"
        yield Flaw.error("service", (*at, "internal_port"), why, "write a number from 1 to 65535")
    if not outer:
        why = "the port of the Kubernetes service is missing: Kubernetes refuses it, and the pipeline fails"
        ports = NODE_PORTS if kind == "NodePort" else _PORTS
        fix = f"write a number from {ports[0]} to {ports[-1]}"
        yield Flaw.error("service", (*at, "external_port"), why, fix)
    elif kind == "NodePort" and outer not in NODE_PORTS:
        why = f"{outer} is outside {NODE_PORTS[0]} to {NODE_PORTS[-1]}, Kubernetes' range of NodePorts"
        yield Flaw.error("service", (*at, "external_port"), why, f"write one of these, such as 3{outer % 1000:04}")
    elif outer not in _PORTS:
        why = f"{outer} is not a port"
        yield Flaw.error("service", (*at, "external_port"), why, "write a number from 1 to 65535")


def _check_served(draft: SpecDraft) -> Iterator[Flaw]:
    """What a service is given: one datum, as files, by a process that asks for nothing."""
    if draft.get("input") is None:
        why = "a service without an input gets no job, and is never started"
        yield Flaw.error("service", ("service",), why, 'add an "input" with the glob "/"')
    at = ("transform", "datum_batching")
    if draft.get(*at):
        why = "a service's command is started once for its one datum, and there is no next one to ask for"
        yield Flaw.error("service", at, why, "remove datum_batching")
    for leaf in inputs.leaves(draft):
        if leaf.value.get("lazy"):
            why = "a service opens its files at any time and again, and a named pipe is read once"
            yield Flaw.error("service", (*leaf.at, "lazy"), why, "remove lazy")
        if leaf.at[-1] == "pfs" and leaf.value.get("glob") not in (None, "", "/"):
            why = f"a service has a single datum, and {leaf.value['glob']} can make several, at which its job fails"
            yield Flaw.warning("service", (*leaf.at, "glob"), why, 'write "/"')
