"""Upgrades from every set of specifications that this repository has had claim no choice that nobody made."""

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.pps.specs import inputs
from pipelines.client.deployment.deployment import WRITTEN
from pipelines.client.deployment.image_sizes import IMAGE_SIZE
from pipelines.specifications import drafts, optional_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from pipelines.upgrades import spec_documents
from pipelines.upgrades.spec_merge import merge_spec
from speclang.merge_patches import merge
from tests.pipelines.upgrades.pipeline_infos import ADDED, env

ROOT = SHIPPED_SPECS.parent
INSTALLED = {draft.name: draft for draft in map(drafts.read, optional_specs.files(SHIPPED_SPECS))}


def _git(*arguments: str, given: str = "") -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    found = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else ""


@cache
def _earlier() -> dict[str, list[Mapping[str, Any]]]:
    """The distinct specifications of each pipeline over the history, as documents."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    changes = _git("log", "-m", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=d", "--format=", "--", "specs")
    files = (line.split("\t") for line in changes.splitlines())
    blobs = {facts.split()[3] for facts, path in files if path.endswith(".json") and "/overlays/" not in path}
    text = _git("cat-file", "--batch=", given="\n".join(sorted(blobs)))
    while text := text.lstrip():
        document, end = json.JSONDecoder().raw_decode(text)
        found.setdefault(document["pipeline"]["name"], []).append(document)
        text = text[end:]
    return found


def _deployed(document: Mapping[str, Any], recorded: bool) -> Any:
    """The pipeline as Pachyderm describes it: members of inputs sorted, defaults filled in."""
    found = merge(ADDED, document)
    name = document["pipeline"]["name"]
    found["input"] = inputs.with_defaults(document["input"], name, "default", "2026-11-01T00:00:00Z")
    if recorded:
        found = merge(found, {"metadata": {"annotations": {WRITTEN: json.dumps(document)}}})
    info = pps_pb2.PipelineInfo()
    info.pipeline.name = name
    json_format.ParseDict(found, info.details, ignore_unknown_fields=True)
    return info


def _size(document: Mapping[str, Any]) -> str:
    return str(document["transform"]["env"].get(IMAGE_SIZE, ""))


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_an_earlier_specification_upgrades_without_choices_that_nobody_made(name: str) -> None:
    earlier = _earlier().get(name, [])
    if not earlier:
        pytest.skip("needs this repository's history, which is not here")
    installed = INSTALLED[name]
    now = spec_documents.from_spec(installed.document)
    for document in earlier:
        found = merge_spec(installed, installed, _deployed(document, recorded=True))
        own = {IMAGE_SIZE: size} if (size := _size(document)) != _size(installed.document) else {}  # the backbone's
        assert (found.kept, found.conflicts) == (tuple(f"{name}={value}" for name, value in own.items()), ())
        assert spec_documents.from_spec(found.draft.document) == merge(now, env(**own))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_the_installed_specification_as_pachyderm_shows_it_is_no_change(name: str, recorded: bool) -> None:
    installed = INSTALLED[name]
    found = merge_spec(installed, installed, _deployed(installed.document, recorded))
    assert (found.draft.document, found.kept, found.conflicts) == (installed.document, (), ())


def test_the_order_of_members_in_a_file_is_no_choice() -> None:
    index = INSTALLED["index"]
    members = index.document["input"]["join"]
    turned = SpecDraft(Path("index.json"), merge(index.document, {"input": {"join": members[::-1]}}), {})
    assert spec_documents.from_spec(turned.document) == spec_documents.from_spec(index.document)
