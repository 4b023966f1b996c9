"""Putting queries into `queries`: each path that was named is one entry, whose result sheet is called as it is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.client.connection import Connection
from pipelines.client.repository import Edit, Put, Remove, Repository
from pipelines.errors import LookalikeError
from pipelines.library import blocks, pictures
from pipelines.library.pictures import Source
from stages.names import NAMES_FILE, escape_component, escape_path, unescape

REPO = "queries"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was put: the entries' true names, how many files they hold, the commit, and what was left out of
    directories."""

    entries: list[str]
    files: int
    commit: str
    left_out: list[str]


def put(connection: Connection, arguments: Sequence[Path], report: Callable[[int], None] = lambda _: None) -> Asked:
    """Puts each path as one query entry, a directory with all its files and a list of their names, replacing entries
    of the same name, in one commit. `report` hears how many more files have been put.

    Raises LookalikeError, having put nothing, for what is not there and for names that cannot be told apart.
    """
    repo = Repository(connection, REPO)
    entries: dict[str, str] = {}
    changes: list[Edit] = []
    files = 0
    left_out: list[str] = []
    for argument in arguments:
        found = pictures.find([argument])
        if not found.sources:
            raise LookalikeError(f"{argument} holds no file: there is nothing to search for")
        name = found.sources[0].name.partition("/")[0]
        path = escape_component(name)
        _refuse_twins(repo, path, name, entries)
        entries[path.partition("/")[0]] = name
        changes += _changes(path, argument.is_dir(), found.sources)
        files += len(found.sources)
        left_out += found.left_out

    def done(change: Edit) -> None:
        report(isinstance(change, Put) and isinstance(change.content, Path))

    return Asked(list(entries.values()), files, repo.write(changes, done), left_out)


def put_in_blocks(
    connection: Connection, name: str, sources: Sequence[Source], report: Callable[[int], None] = lambda _: None
) -> Asked:
    """Puts pictures as the one entry `name`, in blocks as those of a large library, replacing what it held."""
    path = f"/{escape_component(name)}"
    spans = {source.name: source.span for source in sources}
    leaves = blocks.divide(spans)

    def changes() -> Iterator[Edit]:
        yield from (Remove(path), Remove(f"{path}/"))
        for prefix, names in sorted(leaves.items()):
            yield Put(f"{path}/{blocks.file_name(prefix)}", blocks.tar({each: spans[each] for each in names}))
            report(len(names))

    return Asked([name], len(sources), Repository(connection, REPO).write(changes()), [])


def true_name(connection: Connection, entry: str, at: str = "") -> str:
    """The name of an entry as its owner knows it. One that is too long for PFS goes on in the directories below."""
    repo, path = Repository(connection, REPO, at), entry
    while path.endswith("%"):
        below = next(repo.list(f"/{path}"), None)
        if below is None:  # the query has been removed meanwhile
            return f"{unescape(path[:-1])}…"
        path = below.strip("/")
    return unescape(path)


def _refuse_twins(repo: Repository, path: str, name: str, entries: dict[str, str]) -> None:
    """An entry is a top-level file or directory, so that two names too long for one may begin with the same entry."""
    entry = path.partition("/")[0]
    if entry in entries:
        other = entries[entry]
        raise LookalikeError(f"two of the queries are called {name}, or begin alike ({other}): rename one of them")
    if entry != path and repo.exists(f"/{entry}") and not repo.exists(f"/{path}"):
        raise LookalikeError(f"there is another query whose long name begins as that of {name}: rename this one")


def _changes(path: str, directory: bool, sources: Sequence[Source]) -> list[Edit]:
    # What was there under this name may have been a file or a directory.
    entry = path.partition("/")[0]
    changes: list[Edit] = [Remove(f"/{entry}"), Remove(f"/{entry}/")]
    if not directory:
        return [*changes, Put(f"/{path}", sources[0].path)]
    inner = [escape_path(source.name.partition("/")[2]) for source in sources]
    changes += [Put(f"/{path}/{name}", source.path) for name, source in zip(inner, sources, strict=True)]
    # Pachyderm's hash of a directory does not see names: without this list a renamed file would go unnoticed.
    return [*changes, Put(f"/{path}/{NAMES_FILE}", "".join(f"{name}\n" for name in inner).encode())]
