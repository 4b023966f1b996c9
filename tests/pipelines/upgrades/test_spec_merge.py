"""Choices of a library that an upgrade keeps, and those that it cannot."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pipelines.upgrades import spec_documents
from pipelines.upgrades.spec_merge import merge_spec
from speclang.merge_patches import merge
from stages.datum.stage_version import STAGE
from tests.pipelines.upgrades.pipeline_infos import changed, deployed, draft, env, on_top

NEWER: Mapping[str, Any] = {"transform": {"image": "lookalike-cpu:0.2.0", "env": {STAGE: "search-2", "NEW": "1"}}}
CRON = {"input": {"cross": [{"cron": {"name": "tick", "spec": "@daily"}}]}}
GLOB = {"input": {"pfs": {"glob": "/"}}}

variables = st.dictionaries(st.sampled_from(["K", "METRIC", "BACKEND"]), st.sampled_from("3456"))


@given(variables, variables)
def test_the_choices_of_a_recorded_deployment_are_kept_and_all_else_is_the_installed_one(
    chosen: dict[str, str], defaults: dict[str, str]
) -> None:
    then, now = (
        changed(env(METRIC="1", BACKEND="1")),
        changed(NEWER, env(**{"METRIC": "1", "BACKEND": "1", **defaults})),
    )
    found = merge_spec(draft(now), draft(now), deployed(merge(then, env(**chosen)), then))
    own = {name: value for name, value in chosen.items() if then["transform"]["env"][name] != value}
    assert spec_documents.from_spec(found.draft.document) == spec_documents.from_spec(merge(now, env(**own)))
    assert found.conflicts == ()
    assert set(found.kept) == {
        f"{name}={value}" for name, value in own.items() if now["transform"]["env"][name] != value
    }


@given(variables)
def test_without_a_record_every_variable_stays_but_the_stage(chosen: dict[str, str]) -> None:
    found = merge_spec(draft(NEWER), draft(NEWER), deployed(changed(env(**chosen))))
    expected = {"K": "3", **chosen, STAGE: "search-2", "NEW": "1"}
    assert found.draft.get("transform", "env") == expected


def test_a_pipeline_as_it_is_written_is_equal_to_its_specification() -> None:
    assert spec_documents.from_deployed(deployed(changed())) == spec_documents.from_spec(changed())
    found = merge_spec(draft(), draft(), deployed(changed(), changed()))
    assert (found.draft.document, found.kept, found.conflicts) == (changed(), (), ())


@pytest.mark.parametrize("recorded", [True, False])
def test_resources_nodes_and_secrets_stay(recorded: bool) -> None:
    overlay = {
        "resource_limits": None,
        "resource_requests": {"memory": "8Gi"},
        "scheduling_spec": {"node_selector": {"pool": "gpu"}},
        "transform": {"image_pull_secrets": ["mine"], "image": "registry.example.com/a/lookalike-cpu:0.1.0"},
    }
    found = merge_spec(draft(NEWER), draft(NEWER), deployed(changed(overlay), changed() if recorded else None))
    image = {"transform": {"image": "registry.example.com/a/lookalike-cpu:0.2.0"}}
    assert found.draft.document == changed(overlay, NEWER, image)
    assert set(found.kept) == {
        "without resource_limits",
        "resource_requests.memory=8Gi",
        "scheduling_spec.node_selector.pool=gpu",
        "image_pull_secrets",
        "image=registry.example.com/a/lookalike-cpu:0.2.0",
    }


def test_what_is_asked_for_prevails() -> None:
    for value in ("9", "3"):  # the second is the installed one
        found = merge_spec(draft(NEWER), on_top(draft(NEWER), env(K=value)), deployed(changed(env(K="7")), changed()))
        assert found.draft.get("transform", "env", "K") == value
        assert found.kept == ()


def test_an_input_of_an_overlay_stays_while_the_installed_one_is_the_same() -> None:
    runs = changed({"input": {"pfs": {"branch": "train"}}})
    found = merge_spec(draft(NEWER), draft(NEWER), deployed(runs, changed()))
    assert found.draft.get("input", "pfs", "branch") == "train"
    assert found.conflicts == ()
    assert merge_spec(draft(GLOB), draft(GLOB), deployed(changed(), changed())).draft.get("input", "pfs", "glob") == "/"


@pytest.mark.parametrize("written", [changed(), None])
def test_an_input_that_nobody_can_merge_is_a_conflict_unless_an_overlay_decides(written: dict[str, Any] | None) -> None:
    runs = deployed(changed({"input": {"pfs": {"branch": "train"}}}), written)
    assert merge_spec(draft(GLOB), draft(GLOB), runs).conflicts == ("input",)
    decided = on_top(draft(GLOB), {"input": {"pfs": None}}, CRON)
    found = merge_spec(draft(GLOB), decided, runs)
    assert found.conflicts == ()
    assert found.draft.get("input") == CRON["input"]


def test_a_tag_of_its_own_stays_until_there_is_a_newer_image() -> None:
    runs = deployed(changed({"transform": {"image": "mine/lookalike-cpu:fixed"}}), changed())
    same = merge_spec(draft(), draft(), runs)
    assert (same.draft.get("transform", "image"), same.conflicts) == ("mine/lookalike-cpu:fixed", ())
    assert merge_spec(draft(NEWER), draft(NEWER), runs).conflicts == ("transform.image",)


def test_the_size_of_pictures_stays_with_the_backbone() -> None:
    then, now = changed(env(IMAGE_SIZE="96")), draft(env(IMAGE_SIZE="224"))
    assert merge_spec(now, now, deployed(then, then)).draft.get("transform", "env", "IMAGE_SIZE") == "96"
    asked = on_top(now, env(IMAGE_SIZE="160"))
    assert merge_spec(now, asked, deployed(then, then)).draft.get("transform", "env", "IMAGE_SIZE") == "160"


def test_the_order_in_which_the_members_of_an_input_are_written_is_no_difference() -> None:
    """Pachyderm sorts the members of crosses and joins by name, so that a pipeline has another order than its file."""

    def reading(*join: str, last: bool) -> dict[str, Any]:
        members = [{"pfs": {"name": name, "repo": name, "branch": "master", "glob": "/(*)"}} for name in join]
        whole = {"pfs": {"repo": "b", "branch": "master", "glob": "/"}}
        return changed({"input": {"pfs": None, "cross": [{"join": members}, whole][:: 1 if last else -1]}})

    one, other = reading("z", "c", last=True), reading("c", "z", last=False)
    assert spec_documents.from_spec(one) == spec_documents.from_spec(other)
    assert spec_documents.from_spec(one) != spec_documents.from_spec(reading("c", "d", last=True))
