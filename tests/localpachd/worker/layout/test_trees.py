"""Any tree of files passes through a datum unchanged, by every way of giving and keeping it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.example_counts import examples
from tests.localpachd.worker.bench import Bench

_ALLOWED = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in "/*?[]{}!()@+^")
_NAMES = st.text(_ALLOWED, min_size=1, max_size=12).filter(lambda name: name not in (".", ".."))
_TREES = st.recursive(
    st.binary(max_size=50), lambda below: st.dictionaries(_NAMES, below, min_size=1, max_size=3), max_leaves=8
).filter(lambda tree: isinstance(tree, dict))


Tree = Mapping[str, "bytes | Tree"]


def _files(tree: Tree, above: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, node in tree.items():
        path = f"{above}/{name}"
        found |= {path: node} if isinstance(node, bytes) else _files(node, path)
    return found


_TOP = 'cd "$in"; find . -mindepth 1 -maxdepth 1 -exec sh -c '
_WAYS: dict[str, tuple[dict[str, bool], str]] = {
    "copied": ({}, 'cp -r "$in/." "$PFS/out"'),
    "copied from pipes": (
        {"lazy": True},
        'cd "$in"; find . -type p -exec sh -c \'mkdir -p "$1/${2%/*}"; cat "$2" > "$1/$2"\' sh "$PFS/out" {} \\;',
    ),
    "linked": ({}, _TOP + '\'ln -s "$1/$3" "$2/$3"\' sh "$in" "$PFS/out" {} \\;'),
    "linked unread": ({"lazy": True}, _TOP + '\'ln -s "../in/$2" "$1/$2"\' sh "$PFS/out" {} \\;'),
}


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=_TREES, way=st.sampled_from(sorted(_WAYS)))
def test_trees_go_through_unchanged(bench: Bench, tree: Tree, way: str) -> None:
    content = _files(tree)
    how, script = _WAYS[way]
    result = bench.one(bench.sh(script), bench.input("in", "/", content, **how))
    assert (result.state, result.reason) == ("PROCESSED", "")
    assert bench.output(result) == content
    assert [file.path for file in result.output] == sorted(content)


def test_temporary_files_go_with_the_set(at_home: Bench) -> None:
    before = {*Path(tempfile.gettempdir()).glob("worker-trial-*")}
    task = at_home.sh('mktemp "${TMPDIR:-/tmp}/worker-trial-XXXX"; touch ./worker-trial-here')
    assert at_home.one(task, at_home.input("in", "/f", {"/f": b""})).state == "PROCESSED"
    if at_home.mounts:  # otherwise its path can be too long for sockets, and /tmp is used
        assert {*Path(tempfile.gettempdir()).glob("worker-trial-*")} == before
    else:
        Path(at_home.said()[0]).unlink(missing_ok=True)
