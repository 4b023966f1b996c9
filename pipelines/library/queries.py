"""Pictures put into `queries`: each path is one entry, whose result sheet has its name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import picture_sources
from pipelines.library.picture_sources import PictureSource
from pipelines.library.selection import NothingFoundError, select
from stages.files import blocks
from stages.record.file_kinds import HEAD, why_unreadable
from stages.record.pfs_names import NAMES_FILE, QUESTION_FILE, escape_component, escape_path, is_text, unescape

REPO = "queries"


@dataclass(frozen=True, slots=True)
class QueryUpload:
    """The outcome: the true names of the entries, the number of files, the commit, the skipped directory entries, and
    the reasons for which files could not be read, by path."""

    entries: list[str]
    files: int
    commit: str
    left_out: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryEntries:
    """Paths as entries: the files of each, the skipped directory entries, and the reasons for which files could not be
    read, by path."""

    groups: list[list[PictureSource]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def worded(self) -> bool:
        """Whether an entry asks with words alone."""
        return any(all(is_text(each.name) for each in group) for group in self.groups)

    @property
    def wordless(self) -> bool:
        """Whether an entry asks with pictures alone."""
        return any(not any(is_text(each.name) for each in group) for group in self.groups)


@dataclass(frozen=True, slots=True)
class QueryRemoval:
    """The true names of removed entries, and the commit."""

    entries: list[str]
    commit: str


def find(arguments: Sequence[Path]) -> QueryEntries:
    """Each path as one query entry, a directory with all its files. Raises LookalikeError for a missing path, and for
    one without a file that can be read."""
    all_found = QueryEntries()
    for argument in picture_sources.expanded(arguments):
        found = picture_sources.find([argument], beside=_is_taken, idx=False)
        readable = picture_sources.readable(found.sources)
        all_found.unreadable.update(found.unreadable | readable.unreadable)
        all_found.left_out.extend(found.left_out)
        if not readable.sources:
            raise LookalikeError(_nothing(argument, all_found.unreadable))
        all_found.groups.append(readable.sources)
    return all_found


def _is_taken(name: str) -> bool:
    return name == QUESTION_FILE or is_text(name)


def lay_out(groups: Sequence[Sequence[PictureSource]], directory: Path, question: bytes = b"") -> dict[str, str]:
    """Lays each group of files out in a directory as `put` would in the repo, with links to the files. Returns the true
    names of the entries by their names in the repo. Raises LookalikeError for names that collide."""
    entries, edits = _edits(groups, question)
    for edit in edits:
        if isinstance(edit, PutFile):
            file = directory / edit.path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(edit.content, Path):
                file.symlink_to(edit.content.absolute())
            elif isinstance(edit.content, bytes):
                file.write_bytes(edit.content)
    return entries


def put(
    connection: Connection,
    found: QueryEntries,
    report: Callable[[int], None] = lambda _: None,
    question: bytes = b"",
) -> QueryUpload:
    """Puts each group of files as one query entry, a directory with all its files and a list of their names, replacing
    entries of the same name, in one commit. `report` is called with the number of files put since its last call.
    question: the question.json of each entry, which replaces its own; b"" for none, and then a file is an entry without
    a directory. Raises LookalikeError, with nothing put, for names that collide."""
    repo = Repository(connection, REPO)
    entries, edits = _edits(found.groups, question, repo)

    def done(edit: FileEdit) -> None:
        report(isinstance(edit, PutFile) and isinstance(edit.content, Path))

    commit = repo.write(edits, done)
    files = sum(map(len, found.groups))
    return QueryUpload(list(entries.values()), files, commit, found.left_out, found.unreadable)


def _nothing(argument: Path, unreadable: Mapping[str, str]) -> str:
    for path, reason in unreadable.items():
        return f"cannot read {path}: {reason}: nothing was put"
    if argument.is_file():
        return f"{argument} cannot be searched for: {why_unreadable(argument.read_bytes()[:HEAD])}"
    return f"{argument} has no pictures: nothing to search for"


def put_in_blocks(
    connection: Connection, name: str, sources: Sequence[PictureSource], report: Callable[[int], None] = lambda _: None
) -> QueryUpload:
    """Puts pictures as the one entry `name`, in blocks as in a large library, replacing its content."""
    path = f"/{escape_component(name)}"
    spans = {source.name: source.span for source in sources}

    def edits() -> Iterator[FileEdit]:
        yield from (DeleteFile(path), DeleteFile(f"{path}/"))
        for each in map(blocks.block, blocks.cut(spans)):
            yield PutFile(f"{path}/{each.name}", each.pieces())
            report(len(each.pictures))

    return QueryUpload([name], len(sources), Repository(connection, REPO).write(edits()))


def remove(connection: Connection, words: Sequence[str] | None) -> QueryRemoval:
    """Removes the entries that these words mean, see `selection.select`; None stands for all. Raises LookalikeError,
    and removes none, if a word means nothing or there is no entry."""
    repo = Repository(connection, REPO)
    entries = {true_name(connection, path.strip("/")): path.strip("/") for path in repo.list()}
    if not entries:
        raise NothingFoundError("there are no queries: nothing was removed")
    names = list(entries) if words is None else select(words, entries.__contains__, lambda: entries, "the queries")
    edits = [DeleteFile(f"/{entries[name]}{end}") for name in names for end in ("", "/")]
    return QueryRemoval(names, repo.write(edits))


def true_name(connection: Connection, entry: str, at: str = "") -> str:
    """The true name of an entry. A name too long for PFS continues in the directories below."""
    repo, path = Repository(connection, REPO, at), entry
    while path.endswith("%"):
        below = next(repo.list(f"/{path}"), None)
        if below is None:  # the query has been removed meanwhile
            return f"{unescape(path[:-1])}…"
        path = below.strip("/")
    return unescape(path)


def _edits(
    groups: Sequence[Sequence[PictureSource]], question: bytes, repo: Repository | None = None
) -> tuple[dict[str, str], list[FileEdit]]:
    """The true names of entries by their names in the repo, and the edits that put them. Raises LookalikeError for a
    name that shares its entry with another one, of them or in the repo: names too long for one component are split."""
    entries: dict[str, str] = {}
    edits: list[FileEdit] = []
    for sources in groups:
        name = sources[0].name.partition("/")[0]
        path = escape_component(name)
        entry = path.partition("/")[0]
        if other := entries.get(entry):
            raise LookalikeError(f"two of the queries are called {name}, or begin alike ({other}): rename one of them")
        if repo and entry != path and repo.exists(f"/{entry}") and not repo.exists(f"/{path}"):
            raise LookalikeError(f"the name {name} clashes with another query's after truncation: rename this one")
        entries[entry] = name
        # The old entry of this name may be a file or a directory.
        edits += [DeleteFile(f"/{entry}"), DeleteFile(f"/{entry}/"), *_files(path, sources, question)]
    return entries, edits


def _files(path: str, sources: Sequence[PictureSource], question: bytes) -> Iterator[FileEdit]:
    if "/" not in sources[0].name and not question:
        yield PutFile(f"/{path}", sources[0].path)
        return
    inner = {escape_path(each.name.partition("/")[2] or each.name): each.path for each in sources}
    if question:
        yield PutFile(f"/{path}/{QUESTION_FILE}", question)
        inner.pop(QUESTION_FILE, None)
    yield from (PutFile(f"/{path}/{name}", file) for name, file in inner.items())
    # Pachyderm's hash of a directory does not see names: without this list a renamed file would go unnoticed.
    yield PutFile(f"/{path}/{NAMES_FILE}", "".join(f"{name}\n" for name in inner).encode())
