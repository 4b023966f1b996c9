"""The tree of inputs and the rules of the names in it."""

from typing import Any

import pytest

from speclang import inputs
from speclang.inputs import InputNameFault, InputNameRule


def pfs(repo: str, **fields: Any) -> dict[str, Any]:
    return {"pfs": {"repo": repo, **fields}}


def cron(name: str) -> dict[str, Any]:
    return {"cron": {"name": name, "spec": "@daily"}}


def test_every_node_is_visited_parents_first() -> None:
    tree = {"cross": [pfs("a"), {"union": [cron("b"), {"join": [], "group": None}]}]}
    found = dict(inputs.nodes(tree, ("input",)))
    assert list(found) == [
        ("input",),
        ("input", "cross", 0),
        ("input", "cross", 1),
        ("input", "cross", 1, "union", 0),
        ("input", "cross", 1, "union", 1),
    ]
    assert found["input", "cross", 1, "union", 0] == cron("b")


@pytest.mark.parametrize(
    ("tree", "faults"),
    [
        ({}, []),
        (pfs("a"), []),
        (pfs("out"), [(InputNameRule.RESERVED, "out", ("pfs",))]),
        (pfs("out", name="in"), []),
        (cron(".env"), [(InputNameRule.RESERVED, ".env", ("cron",))]),
        (cron(""), [(InputNameRule.MISSING, "", ("cron",))]),
        ({"cron": {"repo": "r"}}, [(InputNameRule.MISSING, "", ("cron",))]),
        (pfs(""), [(InputNameRule.MISSING, "", ("pfs",))]),
        ({"union": [pfs("a"), pfs("a")]}, []),
        ({"union": [pfs("a"), {"cross": [pfs("a"), pfs("b")]}]}, []),
        ({"cross": [{"union": [pfs("a"), pfs("b")]}, pfs("b")]}, [(InputNameRule.REPEATED, "b", ("cross", 1, "pfs"))]),
        ({"cross": [pfs("b"), {"union": [pfs("a"), pfs("b")]}]},
         [(InputNameRule.REPEATED, "b", ("cross", 1, "union", 1, "pfs"))]),
        ({"join": [pfs("a"), cron("a"), pfs("b", name="a")]},
         [(InputNameRule.REPEATED, "a", ("join", 1, "cron")), (InputNameRule.REPEATED, "a", ("join", 2, "pfs"))]),
        ({"group": [pfs("a"), pfs("a")]}, [(InputNameRule.REPEATED, "a", ("group", 1, "pfs"))]),
    ],
)  # fmt: skip
def test_names(tree: dict[str, Any], faults: list[tuple[Any, ...]]) -> None:
    assert list(inputs.name_faults(tree)) == [InputNameFault(*fault) for fault in faults]
