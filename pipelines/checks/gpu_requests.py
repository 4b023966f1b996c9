"""Whether the nodes that a specification asks for have the GPUs that it needs: their number, age and driver."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.checks import hardware, pods
from pipelines.checks.hardware import GpuRequirements
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw
from pipelines.specifications.image_reference import ImageReference
from speclang.field_paths import FieldPath
from stages.datum.text_format import counted

SPECS = "k8s.aliyun.com/eci-use-specs"
DRIVER = "k8s.aliyun.com/eci-gpu-driver-version"
_SPECS_AT: FieldPath = ("metadata", "annotations", SPECS)
_DRIVER_AT: FieldPath = ("metadata", "annotations", DRIVER)
_MOST_SPECS = 5
_WITHOUT_GPU = re.compile(r"[0-9.]+-[0-9.]+Gi")
_RESOURCE = re.compile(r"(nvidia|amd)\.com/gpu")


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Instances with too few GPUs or none, and GPUs and drivers that are too old for the image."""
    image = ImageReference.parse(draft.get("transform", "image", default=""))
    wants = hardware.requirements(image.name) if image is not None else None
    gpus = draft.number("resource_limits", "gpu", "number")
    if wants is not None and gpus:
        for at, name, model in _models(draft):
            yield from _check_generation(at, name, model, wants)
    if draft.get(*map(str, _SPECS_AT)):
        yield from _check_instances(draft)
        if gpus:
            yield from _check_driver(draft, wants)


def _instances(draft: SpecDraft) -> list[str]:
    return [each.strip() for each in draft.get(*map(str, _SPECS_AT), default="").split(",")]


def _models(draft: SpecDraft) -> Iterator[tuple[FieldPath, str, str]]:
    """The models of GPU that the workers may get: the field that asks for it, the name there, the model."""
    for name in _instances(draft):
        known = hardware.instance(name)
        if known is not None:
            yield _SPECS_AT, name, known.model
    selector: Mapping[str, str] = pods.patched_pod(draft).get("nodeSelector") or {}
    for label, value in selector.items():
        for model in hardware.models(label, str(value)):
            yield ("scheduling_spec", "node_selector", label), str(value), model


def _check_generation(at: FieldPath, name: str, model: str, wants: GpuRequirements) -> Iterator[Flaw]:
    has = hardware.CAPABILITIES[model]
    if has < wants.capability:
        why = (
            f"{name} has {model} GPUs ({hardware.GENERATIONS[int(has)]}, compute capability {has}), and "
            f"{wants.software} needs {wants.capability} or more"
        )
        yield Flaw.error("gpu-generation", at, why, "choose Turing (T4) or newer, such as ecs.gn6i, g4dn or L4")


def _check_instances(draft: SpecDraft) -> Iterator[Flaw]:
    names = _instances(draft)
    if len(names) > _MOST_SPECS:
        why = f"names {len(names)} instance types, and ECI takes at most {_MOST_SPECS}"
        yield Flaw.error("eci", _SPECS_AT, why, "keep the best")
    pod = pods.patched_pod(draft)
    asked, said = _asked(pod)
    for name in names:
        known = hardware.instance(name)
        if known is None and _WITHOUT_GPU.fullmatch(name):
            if asked:
                why = f"{name} has no GPU, and the pod asks for {asked}: ECI would not create it"
                yield Flaw.error("eci", _SPECS_AT, why, "name instance types with GPUs only")
        elif known is None:
            why = f"unchecked: the number of GPUs of {name} is not known here"
            yield Flaw.note("eci", _SPECS_AT, why)
        elif asked > known.gpus:
            has = counted(known.gpus, "GPU", "GPUs")
            why = f"{name} has {has}, and the pod asks for {asked} ({said}): ECI would not create it"
            yield Flaw.error("eci", _SPECS_AT, why, "ask for fewer, or name larger instance types")
        elif not asked:
            why = f"{name} has GPUs, and the pod asks for none: ECI only starts pods with a GPU limit on it"
            fix = 'add "resource_limits": {"gpu": {"type": "nvidia.com/gpu", "number": 1}}'
            yield Flaw.error("eci", _SPECS_AT, why, fix)


def _asked(pod: Mapping[str, Any]) -> tuple[int, str]:
    """The GPUs that a pod needs, and how that is the sum of its containers. An init container ends before the others
    start, so its GPUs count only if they are more."""
    after, before = (
        {str(each.get("name")): _gpus(each) for each in pod.get(kind) or () if isinstance(each, Mapping)}
        for kind in ("containers", "initContainers")
    )
    most = max(before.values(), default=0)
    used = {name: gpus for name, gpus in after.items() if gpus}
    said = " + ".join(f"{name} {gpus}" for name, gpus in used.items())
    if most > sum(after.values()):
        return most, " and ".join(f"{name} {gpus}" for name, gpus in before.items() if gpus == most)
    copied = f"; init {most}, copied from the limits, before them" if most else ""
    return sum(after.values()), said + copied


def _gpus(container: Mapping[str, Any]) -> int:
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, Mapping) else None
    found = limits.items() if isinstance(limits, Mapping) else ()
    return sum(int(str(count)) for name, count in found if _RESOURCE.fullmatch(name) and str(count).isdigit())


def _check_driver(draft: SpecDraft, wants: GpuRequirements | None) -> Iterator[Flaw]:
    text = draft.get(*map(str, _DRIVER_AT), default="")
    found = re.fullmatch(r"(tesla|grid)=(\d+)(?:\.[\d.]+)?", text)
    needs = wants or GpuRequirements("CUDA 12", 525, 0.0)
    fits = f"tesla={max(550, needs.driver)}"
    if not text:
        why = f"no {DRIVER}: ECI may choose driver 470, and {needs.software} needs {needs.driver}"
        yield Flaw.warning("driver", _SPECS_AT, why, f'add the annotation "{DRIVER}": "{fits}"')
    elif found is None:
        why = f'"{text}" does not name a driver'
        yield Flaw.error("driver", _DRIVER_AT, why, f'write its major version, such as "{fits}"')
    elif int(found[2]) < needs.driver:
        why = f"driver {found[2]} is too old: {needs.software} needs {needs.driver} or newer"
        yield Flaw.error("driver", _DRIVER_AT, why, f'write "{fits}"')
