"""Globs: the parser, and its two ways to match, each the reference of the other."""

import json
from collections.abc import Iterator
from pathlib import Path

from speclang import glob_machine
from speclang.glob_tokens import tokenise
from speclang.globs import Glob, GlobError, references, substitute
from tests.fuzz.target import Target, text

_RECORDED = Path(__file__).parents[2] / "speclang" / "ohmyglob.json"
_LONGEST_PATH = 60


def _run(data: bytes) -> None:
    """A pattern, a path and a template, a line each."""
    pattern, _, rest = text(data).partition("\n")
    path, _, template = rest.partition("\n")
    try:
        glob = Glob(pattern)
    except GlobError:
        return
    path = "/" + path[:_LONGEST_PATH].strip("/")
    found = glob.match(path)
    assert glob.matches(path) == (found is not None)
    if path != "/":
        other = glob_machine.assemble(tokenise(glob.pattern)).match(path)
        assert (found is None) == (other is None), "the expression and the machine differ"
    if found is None:
        return
    assert path.startswith(glob.literal_prefix) or path == "/"
    assert glob.depth is None or path.count("/") == glob.depth
    assert len(found) == glob.groups + 1 or path == "/"
    substitute(template, found)
    assert all(number >= 0 for number in references(template))


def _seeds() -> Iterator[bytes]:
    entries = json.loads(_RECORDED.read_text())["patterns"]
    for entry in entries[::12]:
        path = next(iter(entry[1]), "/a") if len(entry) > 1 else "/a"
        yield f"{entry[0]}\n{path}\n$1-${{2}}$$".encode()


_WORDS = tuple(
    each.encode()
    for each in (
        *("*", "**", "?", "/", "[", "]", "[!", "[^", "{", "}", ",", "(", ")", "|", "!(", "@(", "+(", "*(", "?(", "\\"),
        *("[:alpha:]", "[:digit:]", "a-z", "$1", "${1}", "$$", "\n", "/**/", "é"),
    )
)

TARGETS = (Target("globs", _run, _seeds, _WORDS, 120),)
