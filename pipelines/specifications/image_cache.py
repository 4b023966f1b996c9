"""The ImageCache of Alibaba Cloud's Elastic Container Instances: the images of the pipelines, kept on a disk snapshot
from which instances start without pulling them. Talks to no cluster."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.errors import LookalikeError
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.overlays import Overlay
from speclang.merge_patches import merge

FILE = "image-cache.yaml"

_MEMBERS = ("name", "namespace", "spec")


def manifest(overlays: Sequence[Overlay], drafts: Sequence[SpecDraft]) -> Mapping[str, Any] | None:
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
