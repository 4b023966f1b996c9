"""The resources that a specification asks for: quantities, requests and limits, and the place of GPUs."""

import re
from collections.abc import Iterator

from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw
from speclang import quantities

_HOLDERS = ("resource_requests", "resource_limits", "sidecar_resource_requests", "sidecar_resource_limits")


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Resources that Kubernetes would refuse or Pachyderm ignore, and pods without a reservation."""
    for holder in _HOLDERS:
        yield from _check_quantities(draft, holder)
        yield from _check_gpu(draft, holder)
    yield from _check_pairs(draft)
    yield from _check_places_of_gpus(draft)
    yield from _check_reserved(draft)


def _check_quantities(draft: SpecDraft, holder: str) -> Iterator[Flaw]:
    for name in ("memory", "disk"):
        text = draft.get(holder, name)
        if not text:
            continue
        amount = quantities.parse(text)
        if amount is None:
            near = re.sub(r"(?i)([kmgtpe]i?)b$", r"\1", text)
            fix = (
                f'write "{near}"'
                if quantities.parse(near) is not None
                else 'write a number and a unit, such as "512Mi"'
            )
            why = f'"{text}" is not a valid quantity: Pachyderm would log that and ignore it'
            yield Flaw.error("quantity", (holder, name), why, fix)
        elif amount < 1 or amount.denominator != 1:
            yield Flaw.error(
                "quantity", (holder, name), f'"{text}" is not a number of bytes', 'write one such as "512Mi"'
            )
        elif amount < 1 << 20:
            why = f'"{text}" is less than a mebibyte'
            yield Flaw.warning("quantity", (holder, name), why, f'did you mean "{text}Mi"?')
    if draft.number(holder, "cpu") < 0:
        yield Flaw.error("quantity", (holder, "cpu"), "is negative", "write a number of cores, such as 0.5")


def _check_gpu(draft: SpecDraft, holder: str) -> Iterator[Flaw]:
    if draft.get(holder, "gpu") is None:
        return
    number, kind = draft.number(holder, "gpu", "number"), draft.get(holder, "gpu", "type", default="")
    if number < 0:
        yield Flaw.error("gpu", (holder, "gpu", "number"), "is negative", "write the number of GPUs, such as 1")
    if not kind:
        why = "has no type, so Kubernetes cannot count GPUs"
        yield Flaw.error("gpu", (holder, "gpu"), why, 'add "type": "nvidia.com/gpu"')
    elif not re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[A-Za-z0-9._-]+", kind):
        why = f'"{kind}" is not a resource that a device plugin could offer'
        yield Flaw.error("gpu", (holder, "gpu", "type"), why, 'write one such as "nvidia.com/gpu"')


def _check_pairs(draft: SpecDraft) -> Iterator[Flaw]:
    for requests, limits in (_HOLDERS[:2], _HOLDERS[2:]):
        for name in ("cpu", "memory", "disk"):
            asked, allowed = (
                quantities.parse(str(draft.get(holder, name, default=0))) for holder in (requests, limits)
            )
            if asked and allowed and asked > allowed:
                why = f"is more than {limits}.{name} ({draft.get(limits, name)}): Kubernetes refuses such a pod"
                yield Flaw.error("limits", (requests, name), why, "lower it, or raise the limit")


def _check_places_of_gpus(draft: SpecDraft) -> Iterator[Flaw]:
    asked, allowed = (draft.number(holder, "gpu", "number") for holder in _HOLDERS[:2])
    if asked and not allowed:
        why = "GPUs are only in the requests: Kubernetes refuses a pod that asks for GPUs without a limit"
        yield Flaw.error("gpu", ("resource_requests", "gpu"), why, "move it to resource_limits")
    elif asked and asked != allowed:
        why = f"asks for {asked:.0f} GPUs, but the limit is {allowed:.0f}: Kubernetes wants both to be equal"
        yield Flaw.error("gpu", ("resource_requests", "gpu"), why, "remove it: the limit is enough")
    for holder in _HOLDERS[2:]:
        if draft.number(holder, "gpu", "number"):
            why = "gives more GPUs to the storage container, which does not compute anything"
            yield Flaw.warning("gpu", (holder, "gpu"), why, "remove it")


def _check_reserved(draft: SpecDraft) -> Iterator[Flaw]:
    """Pachyderm's default requests only apply to a pipeline without requests and limits. Where a request is missing,
    Kubernetes uses the limit."""
    if draft.get("resource_limits") is None:
        return
    bare = [
        name
        for name in ("cpu", "memory")
        if not draft.get("resource_requests", name) and not draft.get("resource_limits", name)
    ]
    if bare:
        names = " and ".join(bare)
        why = (
            f"there are limits but no request for {names}: limits turn off Pachyderm's defaults, so nothing is reserved"
        )
        fix = 'add them, such as "resource_requests": {"cpu": 1, "memory": "2Gi"}'
        field = "resource_requests" if draft.get("resource_requests") is not None else "resource_limits"
        yield Flaw.warning("requests", (field,), why, fix)
