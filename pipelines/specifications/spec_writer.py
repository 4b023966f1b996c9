"""Specifications with overlays as plain files, for `pachctl create pipeline -f` and `kubectl apply -f`; among them the
ImageCache of Alibaba Cloud's Elastic Container Instances: the images of the pipelines on a disk snapshot, from which
instances start without pulling them. Talks to no cluster."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipelines.errors import LookalikeError
from pipelines.specifications import optional_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.overlays import Overlay
from speclang.merge_patches import merge

FILE = "image-cache.yaml"

_MEMBERS = ("name", "namespace", "spec")


def image_cache(overlays: Sequence[Overlay], drafts: Sequence[SpecDraft]) -> Mapping[str, Any] | None:
    """The ImageCache for exactly the images that specifications with these overlays use; None where no overlay has
    `image_cache`. Raises LookalikeError where that is not as it should be."""
    asked = [overlay for overlay in overlays if overlay.image_cache]
    if not asked:
        return None
    settings: Mapping[str, Any] = {}
    for overlay in asked:
        wrong = [name for name in overlay.image_cache if name not in _MEMBERS]
        if wrong or not isinstance(overlay.image_cache.get("name"), str):
            raise LookalikeError(f"{overlay.path}: image_cache needs a name, and may have a namespace and a spec")
        settings = merge(settings, overlay.image_cache)
    images = {draft.get("transform", "image") for draft in drafts} - {None}
    secrets = {each for draft in drafts for each in draft.get("transform", "image_pull_secrets", default=())}
    spec: dict[str, Any] = {"images": sorted(images)}
    if secrets:
        namespace = settings.get("namespace", "default")
        spec["imagePullSecrets"] = [f"{namespace}:{secret}" for secret in sorted(secrets)]
    return {
        "apiVersion": "eci.alibabacloud.com/v1",
        "kind": "ImageCache",
        "metadata": {"name": settings["name"]},
        "spec": merge(settings.get("spec", {}), spec),
    }


def as_yaml(value: Mapping[str, Any], indent: int = 0) -> str:
    """A manifest as YAML: objects and lists in blocks, everything else as JSON, which YAML includes."""
    text = ""
    for name, each in value.items():
        if isinstance(each, Mapping) and each:
            text += f"{' ' * indent}{name}:\n{as_yaml(each, indent + 2)}"
        elif isinstance(each, list) and each:
            text += f"{' ' * indent}{name}:\n{''.join(_item(item, indent) for item in each)}"
        else:
            text += f"{' ' * indent}{name}: {json.dumps(each)}\n"
    return text


def _item(value: Any, indent: int) -> str:
    if isinstance(value, Mapping) and value:
        return f"{' ' * indent}- {as_yaml(value, indent + 2)[indent + 2 :]}"
    return f"{' ' * indent}- {json.dumps(value)}\n"


_NONE: Mapping[str, str] = MappingProxyType({})


def write(
    directory: Path, drafts: Sequence[SpecDraft], overlays: Sequence[Overlay], further: Mapping[str, str] = _NONE
) -> list[Path]:
    """Writes a file for each specification, opt-in ones in the sub-directories that they come from, the texts of
    further files by their names, and the ImageCache if an overlay has one; returns their paths. Raises LookalikeError,
    with nothing written, where that would put a file in place of one that was read."""
    texts = {
        f"{Path(optional_specs.directory(draft.path), draft.path.stem)}.json": json.dumps(draft.document, indent=2)
        + "\n"
        for draft in drafts
    }
    texts |= {name: text for name, text in further.items() if text}
    cache = image_cache(overlays, drafts)
    if cache is not None:
        texts[FILE] = as_yaml(cache)
    read = {draft.path.resolve() for draft in drafts}
    for name in texts:
        if (directory / name).resolve() in read:
            raise LookalikeError(f"{directory / name} is one of the specifications read: name another directory")
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]
