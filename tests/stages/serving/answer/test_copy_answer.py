"""Ticks against groups: whatever is ticked, a group keeps a file, or nothing is removed."""

from __future__ import annotations

from hypothesis import given, settings, strategies

from stages.quality import copy_groups
from stages.serving.answer import copy_answer
from stages.serving.follow.copy_listings import CopyListing
from stages.serving.follow.refusals import Refusal
from tests.example_counts import examples
from tests.stages.pairings import candidates, source

names = strategies.sampled_from([f"{letter}.png" for letter in "abcdefghij"])
groups = strategies.lists(strategies.lists(names, min_size=2, max_size=5), max_size=4)


def listing(exact: list[list[str]], near: list[list[str]]) -> CopyListing:
    """Groups of these names, of which one may be in several, and several times in one."""
    lines = {
        kind: [line.encode() for line in copy_groups.json_lines(_groups(of), {})]
        for kind, of in (("exact", exact), ("near", near))
    }
    return CopyListing("1" * 32, "2" * 32, lines)


def _groups(names: list[list[str]]) -> list[copy_groups.CopyGroup]:
    sources = [
        [source(name, pixels=str(number), size=place) for place, name in enumerate(each)]
        for number, each in enumerate(names)
    ]
    return copy_groups.exact_groups(candidates(sources))


@given(groups, groups, strategies.sets(names, min_size=1))
@settings(max_examples=examples(200))
def test_every_group_keeps_a_file_or_nothing_goes(
    exact: list[list[str]], near: list[list[str]], ticked: set[str]
) -> None:
    every = [set(each) for each in (*exact, *near)]
    allowed = ticked <= set().union(*every) and not any(each <= ticked for each in every)
    try:
        found = copy_answer.removal(listing(exact, near), ticked)
    except Refusal as refusal:
        assert not allowed, refusal
        return
    assert allowed
    going = {each["path"] for group in found["groups"] for each in group["remove"]}
    assert (going, found["count"]) == (ticked, len(ticked))
    assert all(group["stay"] for group in found["groups"])
