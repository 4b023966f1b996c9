"""Specifications with overlays as plain files, for `pachctl create pipeline -f` and `kubectl apply -f`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pipelines.errors import LookalikeError
from pipelines.specifications import image_cache, optional_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.overlays import Overlay

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
    cache = image_cache.manifest(overlays, drafts)
    if cache is not None:
        texts[image_cache.FILE] = image_cache.as_yaml(cache)
    read = {draft.path.resolve() for draft in drafts}
    for name in texts:
        if (directory / name).resolve() in read:
            raise LookalikeError(f"{directory / name} is one of the specifications read: name another directory")
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]
