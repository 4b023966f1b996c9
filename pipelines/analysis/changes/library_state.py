"""The library at a moment: the commits of its repos and the versions of its pipelines on which the answers of then
depend."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from pipelines.analysis.changes.pipeline_versions import PipelineVersion, PipelineVersions
from pipelines.client import commit_sets
from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.result_sheets import REPO
from pipelines.library.snapshots import FETCHED
from stages.datum.contract import StageError
from stages.files import thumbnail_files
from stages.files.tables.parquet import damage_refused, read_columns
from stages.files.thumbnail_files import SUFFIX
from stages.record import entry_paths

_READ = ("images", FETCHED, "queries", "models", "preprocess", "preprocess-queries", "features-queries", "search")


@dataclass(frozen=True, slots=True)
class LibraryState:
    """id: of the commit of `render` with the answers. started: when its commit set began here (UTC). commits: those of
    other repos, by name, that the answers were computed from; a repo without one is missing. versions: of the
    pipelines, by name."""

    id: str
    started: datetime
    commits: Mapping[str, str]
    versions: Mapping[str, PipelineVersion]


def at(connection: Connection, text: str) -> LibraryState:
    """The library at a commit or date, see `commit_sets.commit_at`; now for "". Raises LookalikeError if there were no
    answers then."""
    if text:
        return _state(connection, commit_sets.commit_at(connection, text), text)
    good = next((each.id for each in commit_sets.list_commit_sets(connection) if each.good), None)
    if good is None:
        raise LookalikeError("there are no answers yet: add pictures with `lookalike add`, then `lookalike query`")
    return _state(connection, good, "now")


def commit_of(connection: Connection, repo: str, commit_set: str) -> str:
    """The commit of a repo at a commit set: its own, that from which this was computed, or else the newest one that
    began before; "" for none."""
    found = commit_sets.inspect_commit(connection, repo, commit_set)
    if found is not None:
        return str(found.commit.id)
    began = commit_sets.start_time(connection, commit_set)
    return next(
        (each.id for each in CommitHistory(connection).records(repo) if began is None or each.started <= began), ""
    )


def _state(connection: Connection, commit_set: str, text: str) -> LibraryState:
    info = commit_sets.inspect_commit(connection, REPO, commit_set)
    if info is None:
        older = commit_of(connection, REPO, commit_set)
        info = commit_sets.inspect_commit(connection, REPO, older) if older else None
    if info is None:
        raise LookalikeError(
            f"there were no answers at {text}: `lookalike history` lists the changes, with their times"
        )
    if info.error:
        raise LookalikeError(
            f"the answers of {text} are missing, since a job failed ({info.error}): name another commit"
        )
    if not info.HasField("finished"):
        raise LookalikeError(f"the answers of {text} are not computed yet: wait for its jobs, see `lookalike status`")
    id_ = str(info.commit.id)
    found = {repo: commit_sets.inspect_commit(connection, repo, id_) for repo in _READ}
    commits = {repo: str(each.commit.id) for repo, each in found.items() if each is not None}
    versions = PipelineVersions(connection)
    specs = {name: commit_sets.inspect_commit(connection, name, id_, "spec") for name in versions.pipelines}
    then = {name: versions.of(name, str(each.commit.id)) for name, each in specs.items() if each is not None}
    return LibraryState(id_, _time(info), commits, {name: each for name, each in then.items() if each is not None})


def _time(info: Any) -> datetime:
    found: datetime = info.started.ToDatetime(tzinfo=UTC)
    return found


_TABLE = ".parquet"


def thumbnails(connection: Connection, state: LibraryState, entry: str, ids: Collection[str]) -> dict[str, bytes]:
    """The JPEG files of these pictures, the queries of an entry (a PFS name) and their neighbours, by id. Those that no
    sheet shows, and those of tables that cannot be read, are missing."""
    found: dict[str, bytes] = {}
    for pipeline, pattern in _tables(entry):
        if pipeline in state.commits:
            repo = Repository(connection, pipeline, state.commits[pipeline])
            files = dict(repo.read_all(pattern))
            for path in (each for each in files if each.endswith(_TABLE)):
                try:
                    thumbnails = read_thumbnails(files[path], files.get(f"{path.removesuffix(_TABLE)}{SUFFIX}", b""))
                except StageError:  # another version's: the page shows the name
                    continue
                found |= {id_: thumbnails[id_] for id_ in thumbnails.keys() & ids}
    return found


def read_thumbnails(content: bytes, apart: bytes = b"") -> dict[str, bytes]:
    """The JPEG file of every picture that has one, by id, from the bytes of any table of pictures or of neighbours,
    also of other versions. apart: the file of thumbnails beside it, if there is one. Raises StageError for others."""
    with damage_refused(BytesIO(content)):
        table = read_columns(BytesIO(content), ["id", "thumbnail", "thumbnail_size"])
        if "thumbnail" in table.column_names:
            thumbnails = table["thumbnail"].to_pylist()
        else:
            places = thumbnail_files.places("", table["thumbnail_size"].to_pylist())
            pieces = ((apart[place.begin : place.begin + place.size], place) for place in places)
            thumbnails = [thumbnail_files.check(piece, place, "the file beside it") for piece, place in pieces]
        return {id_: each for id_, each in zip(table["id"].to_pylist(), thumbnails, strict=True) if each}


def _tables(entry: str) -> Iterator[tuple[str, str]]:
    """The repos and the patterns of the tables that hold the pictures of an entry, or have them beside them."""
    yield "features-queries", f"/{entry_paths.directory(entry)}/images.*"
    yield "features-queries", f"/queries/{entry}/images.parquet"  # of versions without buckets
    yield "search", f"/{entry}/*.parquet"
