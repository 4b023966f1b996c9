"""Order, defaults and checks of a pipeline's input, with Pachyderm's exact texts."""

import copy
import re
from typing import Any

import pytest

from localpachd.errors import InvalidArgument, PachError
from localpachd.pfs.pfs_entities import Branch, Repo
from localpachd.pps.specs import inputs, validation

NOW = "2024-01-01T00:00:00Z"


def pfs(repo: str = "r", **fields: Any) -> dict[str, Any]:
    return {"pfs": {"repo": repo, "glob": "/*", **fields}}


def filled(raw: dict[str, Any]) -> dict[str, Any]:
    return inputs.with_defaults(raw, "p", "default", NOW)


def test_defaults_of_a_pfs_input() -> None:
    assert filled({"pfs": {"repo": "r", "glob": "a//b/"}})["pfs"] == {
        "repo": "r",
        "glob": "/a/b",
        "branch": "master",
        "project": "default",
        "name": "r",
        "repo_type": "user",
    }


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [("/", "/"), ("*", "/*"), ("/a/", "/a"), (".", "/"), ("/a/../b", "/b"), ("/**.txt", "/**.txt")],
)
def test_globs_are_cleaned(given: str, cleaned: str) -> None:
    assert filled({"pfs": {"repo": "r", "glob": given}})["pfs"]["glob"] == cleaned


def test_members_are_sorted_by_given_name_before_names_are_filled_in() -> None:
    tree = filled({"cross": [pfs("z", name="m"), pfs("y"), pfs("x"), pfs("w", name="a")]})
    assert [member["pfs"]["name"] for member in tree["cross"]] == ["y", "x", "a", "m"]


def test_nested_members_are_sorted_by_their_first_leaf() -> None:
    tree = filled({"cross": [{"union": [pfs("q", name="q"), pfs("b", name="b")]}, pfs("a", name="a")]})
    assert tree["cross"][0] == filled(pfs("a", name="a"))
    assert [member["pfs"]["name"] for member in tree["cross"][1]["union"]] == ["b", "q"]


def test_the_given_mapping_is_not_changed() -> None:
    raw = {"cross": [pfs("b", name="b"), pfs("a", name="a")]}
    before = copy.deepcopy(raw)
    filled(raw)
    assert raw == before


def test_trigger_branches_are_numbered_by_repo() -> None:
    tree = filled({"cross": [pfs("r", trigger={"size": "1M"}, name="a"), pfs("r", trigger={"commits": "2"}, name="b")]})
    assert [member["pfs"]["branch"] for member in tree["cross"]] == ["p-trigger-1", "p-trigger-2"]
    assert tree["cross"][0]["pfs"]["trigger"] == {"size": "1M", "branch": "master"}


def test_cron_defaults() -> None:
    cron = filled({"cron": {"name": "tick", "spec": "@daily"}})["cron"]
    assert cron == {"name": "tick", "spec": "@daily", "project": "default", "repo": "p_tick", "start": NOW}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"pfs": {"glob": "/"}}, "input must specify a name"),
        (pfs("out"), "input cannot be named out"),
        (pfs(name=".env"), "input cannot be named .env"),
        ({"cross": [pfs(), pfs()]}, 'name "r" was used more than once'),
        ({"cross": [pfs(), {"union": [pfs(), pfs("s")]}]}, 'name "r" was used more than once'),
        ({"pfs": {"name": "n", "glob": "/"}}, "input must specify a repo"),
        ({"pfs": {"repo": "r"}}, "input must specify a glob"),
        (pfs(commit="c" * 32), "input cannot come from a commit; use a branch with head pointing to the commit"),
        (
            pfs(s3=True),
            "inputs that set 's3' to 'true' must also set 'glob', to \"/\", as the S3 gateway is only able to expose "
            "data at the commit level",
        ),
        (
            pfs(glob="/", s3=True, lazy=True),
            "input cannot specify both 's3' and 'lazy', as 's3' requires input data to be accessed via Pachyderm's S3 "
            "gateway rather than the file system",
        ),
        (
            pfs(glob="/", s3=True, empty_files=True),
            "input cannot specify both 's3' and 'empty_files', as 's3' requires input data to be accessed via "
            "Pachyderm's S3 gateway rather than the file system",
        ),
        ({**pfs(), "cross": [pfs("s")]}, "multiple input types set"),
        ({"cross": [pfs("s")], "group": [pfs("t")]}, "multiple input types set"),
        ({"cron": {"name": "tick", "spec": "never ever"}, "cross": [pfs("s")]}, "multiple input types set"),
        ({"cross": [pfs(), {"cron": {"name": "r", "spec": "@daily"}}]}, 'name "r" was used more than once'),
        ({"cross": [{"union": [pfs("a"), pfs("b")]}, pfs("b")]}, 'name "b" was used more than once'),
        ({"cross": [{"join": [pfs("a"), pfs("b")]}, {"group": [pfs("a")]}]}, 'name "a" was used more than once'),
        ({}, "no input set"),
        ({"join": [pfs(glob="/", s3=True), pfs("s")]}, "S3 inputs in join expressions are not supported"),
        ({"group": [pfs(glob="/", s3=True)]}, "S3 inputs in group expressions are not supported"),
        ({"union": [pfs(glob="/", s3=True), pfs("s")]}, "S3 inputs in union expressions are not supported"),
    ],
)
def test_refusals(raw: dict[str, Any], text: str) -> None:
    with pytest.raises(PachError) as refused:
        validation.check_input(filled(raw))
    assert str(refused.value) == text


def test_an_invalid_glob_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgument, match=re.escape("/[a")):
        validation.check_input(filled(pfs(glob="/[a")))


def test_members_of_a_union_may_share_a_name() -> None:
    validation.check_input(filled({"union": [pfs("r", name="n"), pfs("s", name="n")]}))


def test_branches_are_the_provenance() -> None:
    tree = inputs.parse(
        filled({"cross": [pfs("r", branch="b"), {"union": [pfs("s", project="q"), pfs("r", branch="b")]}]})
    )
    assert inputs.branches(tree) == (Branch(Repo("default", "r"), "b"), Branch(Repo("q", "s"), "master"))
    assert inputs.branches(None) == ()


def test_a_job_names_its_commit_in_every_leaf() -> None:
    shown = inputs.at_commit(filled({"cross": [pfs("a"), {"union": [pfs("b"), pfs("c")]}]}), "d" * 32)
    assert shown["cross"][0]["pfs"]["commit"] == shown["cross"][1]["union"][1]["pfs"]["commit"] == "d" * 32
