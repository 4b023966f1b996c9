"""The datums of inputs, compared with a model that follows the definitions literally, and the order of processing."""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from localpachd import ids
from localpachd.errors import TooMany
from localpachd.pps.datums import Datum, GlobMatch, expand
from localpachd.pps.specs.inputs import CronInput, CrossInput, GroupInput, Input, JoinInput, PfsInput, UnionInput

Files = Mapping[str, tuple[str, ...]]
"""Repo name -> the keys of its files; file `<key>-<n>` is captured as (key, n)."""


def find_in(files: Files) -> Callable[[PfsInput], list[GlobMatch]]:
    def find(leaf: PfsInput) -> list[GlobMatch]:
        return [
            GlobMatch(
                path=f"/{key}-{number}",
                hash=ids.chunk_hash(f"{leaf.repo}{key}{number}".encode()),
                size=len(key),
                captures=(f"/{key}-{number}", key, str(number)),
                commit="c" * 32,
            )
            for number, key in enumerate(files.get(leaf.repo, ()))
        ]

    return find


def leaf(repo: str, name: str = "", **fields: Any) -> PfsInput:
    return PfsInput(name=name or repo, project="default", repo=repo, **fields)


def named(datum: Datum) -> tuple[str, ...]:
    return tuple(f"{each.name}:{each.path}" for each in datum.inputs)


# The model: datums are rows of (name, path, join key, group key, outer), combined by definition. An order in the
# definition, as of the files of one datum, is that of identities.
File = tuple[str, str, str, str, bool]
Row = tuple[File, ...]


def identity(row: Row) -> str:
    """blake2b-256 over name, repo, branch and path of each file, each followed by its length."""
    hashed = hashlib.blake2b(digest_size=32)
    for name, path, *_ in row:
        repo = name[-1] if name.startswith("twin") else name[0]
        for part in (name, repo, "master", path):
            hashed.update(part.encode() + len(part).to_bytes(8, "big"))
    return hashed.hexdigest()


def model(tree: Input, files: Files) -> list[Row]:
    """The datums of an input in the order of their identities; of those that share one, the first."""
    rows: dict[str, Row] = {}
    for row in combined(tree, files):
        rows.setdefault(identity(row), row)
    return [rows[each] for each in sorted(rows)]


def combined(tree: Input, files: Files) -> Iterator[Row]:
    match tree:
        case PfsInput():
            for number, key in enumerate(files.get(tree.repo, ())):
                join_on, group_by = (key if wanted else "" for wanted in (tree.join_on, tree.group_by))
                yield ((tree.name, f"/{key}-{number}", join_on, group_by, tree.outer_join),)
        case UnionInput(members):
            for member in members:
                yield from model(member, files)
        case CrossInput(members):
            for parts in itertools.product(*(model(member, files) for member in members)):
                yield sum(parts, ())
        case JoinInput(members):
            yield from joined([[file for row in model(member, files) for file in row] for member in members])
        case GroupInput(members):
            every = [file for member in members for row in model(member, files) for file in row]
            for key in {file[3] for file in every}:
                yield tuple(file for file in every if file[3] == key)
        case _:
            raise AssertionError(tree)


def joined(members: list[list[File]]) -> Iterator[Row]:
    for key in {file[2] for part in members for file in part}:
        parts = [[file for file in part if file[2] == key] for part in members]
        for row in itertools.product(*filter(None, parts)):
            if kept := row if all(parts) else tuple(file for file in row if file[4]):
                yield kept


def with_names(tree: Input, taken: Iterator[int]) -> Input:
    """Gives every input its own name, except that the members of `twins`, a union, share one."""
    if isinstance(tree, PfsInput):
        return replace(tree, name=f"{tree.repo}{next(taken)}")
    if isinstance(tree, Twins):
        leaves = [member for member in tree.members if isinstance(member, PfsInput)]
        name = f"twin{next(taken)}{leaves[0].repo}"
        return UnionInput(tuple(replace(each, name=name) for each in leaves))
    assert not isinstance(tree, CronInput)
    return type(tree)(tuple(with_names(member, taken) for member in tree.members))


class Twins(UnionInput):
    """A union of the same files under the same name, read in different ways: its members are all pfs inputs."""


keys = st.sampled_from(["a", "b", "c"])
repos = st.sampled_from(["r", "s", "t"])
ways = {"join_on": st.sampled_from(["", "$1"]), "group_by": st.sampled_from(["", "$1"]), "outer_join": st.booleans()}
file_trees = st.fixed_dictionaries({name: st.lists(keys, max_size=3).map(tuple) for name in ("r", "s", "t")})
leaves = st.builds(leaf, repos, **ways)
twins = repos.flatmap(lambda repo: st.lists(st.builds(leaf, st.just(repo), **ways), min_size=2, max_size=2))
trees = st.recursive(
    leaves | twins.map(lambda members: Twins(tuple(members))),
    lambda members: st.builds(
        lambda kind, parts: kind(tuple(parts)),
        st.sampled_from([CrossInput, UnionInput, JoinInput, GroupInput]),
        st.lists(members, min_size=1, max_size=3),
    ),
    max_leaves=5,
).map(lambda tree: with_names(tree, itertools.count()))


@given(trees, file_trees)
def test_expansion_equals_the_model(tree: Input, files: Files) -> None:
    found = {datum.id: datum for datum in expand(tree, find_in(files))}
    expected = model(tree, files)
    assert sorted(found) == [identity(row) for row in expected]
    for row in expected:
        assert row == tuple(
            (each.name, each.path, each.join_on, each.group_by, each.outer_join) for each in found[identity(row)].inputs
        )


@given(trees, file_trees)
def test_datums_come_once_each_and_in_the_same_order_every_time(tree: Input, files: Files) -> None:
    found = [datum.id for datum in expand(tree, find_in(files))]
    assert len(set(found)) == len(found)
    assert found == [datum.id for datum in expand(tree, find_in(files))]


def test_group_orders_by_member_and_then_by_datum_id() -> None:
    tree = GroupInput((leaf("r", group_by="$1"), leaf("s", group_by="$1")))
    (datum,) = expand(tree, find_in({"r": ("a", "a", "a"), "s": ("a", "a")}))
    assert [each.name for each in datum.inputs] == ["r", "r", "r", "s", "s"]
    alone = [ids.datum_id([(each.name, each.repo, each.branch, each.path)]) for each in datum.inputs]
    assert alone == sorted(alone[:3]) + sorted(alone[3:])


def test_pfs_datums_come_in_path_order() -> None:
    found = list(expand(leaf("r"), find_in({"r": ("a", "b", "c")})))
    assert [named(datum) for datum in found] == [("r:/a-0",), ("r:/b-1",), ("r:/c-2",)]


def test_cross_loops_over_its_first_member_once() -> None:
    """The expensive member comes first: a process that keeps it loaded loads each of its datums once."""
    found = list(expand(CrossInput((leaf("r"), leaf("s"))), find_in({"r": ("a", "b", "c"), "s": ("a", "b")})))
    firsts = [datum.inputs[0].path for datum in found]
    assert len(found) == 6
    assert len([path for path, _ in itertools.groupby(firsts)]) == 3


def test_an_incomplete_join_uses_the_settings_of_a_unions_first_member() -> None:
    """The union is one datum before it is joined (`processMergeTask` reads what was stored first under an id)."""
    inner, outer = leaf("s", join_on="$1"), leaf("s", join_on="$1", outer_join=True)
    files = {"s": ("a",)}
    assert list(expand(JoinInput((leaf("r", join_on="$1"), UnionInput((inner, outer)))), find_in(files))) == []
    (datum,) = expand(JoinInput((leaf("r", join_on="$1"), UnionInput((outer, inner)))), find_in(files))
    assert named(datum) == ("s:/a-0",)


def test_the_first_member_of_a_union_that_has_a_datum_gives_its_fields() -> None:
    tree = UnionInput((leaf("r", lazy=True), leaf("r")))
    (datum,) = expand(tree, find_in({"r": ("a",)}))
    assert datum.inputs[0].lazy


def test_cron_datums_are_the_ticks() -> None:
    tree = CronInput(name="tick", project="default", repo="p_tick", spec="@daily")
    (datum,) = expand(tree, find_in({"p_tick": ("2024",)}))
    assert (datum.inputs[0].name, datum.inputs[0].repo, datum.inputs[0].branch) == ("tick", "p_tick", "master")


def test_identity_is_pachyderms() -> None:
    """blake2b-256 over name, repo, branch and path, each followed by its length in eight bytes, big-endian."""
    (datum,) = expand(leaf("r"), find_in({"r": ("a",)}))
    encoded = b"".join(part + len(part).to_bytes(8, "big") for part in (b"r", b"r", b"master", b"/a-0"))
    assert datum.id == ids.chunk_hash(encoded).hex()
    assert datum.hash("salt") == ids.chunk_hash(datum.id.encode() + datum.inputs[0].hash + b"salt").hex()


def test_a_cross_or_join_with_too_many_datums_is_refused_before_it_is_made() -> None:
    files = {"a": ("x",) * 2000}
    three = tuple(leaf("a", name) for name in "abc")
    with pytest.raises(TooMany) as crossed:
        list(expand(CrossInput(three), find_in(files)))
    assert str(crossed.value).startswith("the cross has 8000000000 datums, and a job may have 2000000: ")
    joined = tuple(leaf("a", name, glob="/(*)-*", join_on="$1") for name in "abc")
    with pytest.raises(TooMany, match="the join has 8000000000 datums"):
        list(expand(JoinInput(joined), find_in(files)))
    assert len(list(expand(CrossInput(three[:1]), find_in(files)))) == 2000


def test_an_expansion_can_be_stopped() -> None:
    class Stopped(Exception):
        pass

    calls = itertools.count()

    def check() -> None:
        if next(calls) == 5000:
            raise Stopped

    with pytest.raises(Stopped):
        list(expand(CrossInput((leaf("a"), leaf("a", "b"))), find_in({"a": ("x",) * 1000}), check))
