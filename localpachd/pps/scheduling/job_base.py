"""The base of a job: the commits it reads, the records it inherits, and those it wrote before a restart."""

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from localpachd.errors import PachError
from localpachd.pfs import commit_rows, commits, contents
from localpachd.pfs.pfs_entities import CommitInfo, Repo
from localpachd.pps import datum_records
from localpachd.pps.datums import GlobMatch, MatchFinder
from localpachd.pps.pps_entities import Job
from localpachd.pps.specs.inputs import CronInput, PfsInput
from localpachd.storage import paths, patterns, trees
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileSet, FileSetRef
from localpachd.worker.tasks import DatumOutcome

T = TypeVar("T")

_BATCH = 500  # records read at once


@dataclass(frozen=True, slots=True)
class JobBase:
    """The base of a job.

    `inherited` maps each datum of the base to its hash, or to "" if it must not be skipped. `done` are the job's own
    records of before it was interrupted, without their inputs. `strays` are datums whose files were inherited without a
    record: their files must be removed first.
    """

    inherited: Mapping[str, str]
    done: Mapping[str, datum_records.DatumRecord] = field(default_factory=dict)
    strays: tuple[str, ...] = ()


def missing_commit(conn: sqlite3.Connection, job: Job) -> str:
    """The kind of commit that a job lacks: "output" or "meta", "" if both are there. A branch that was deleted gets no
    commits, and the pipeline's other one does."""
    for kind, commit in (("output", job.output), ("meta", job.meta)):
        if commits.find(conn, commit.repo, commit.id) is None:
            return kind
    return ""


def inputs(conn: sqlite3.Connection, job: Job) -> Mapping[Repo, CommitInfo]:
    """The commits that a job reads, by repo, which are distinct by Pachyderm's rule for DAGs. Deleted ones are
    missing."""
    output = commits.find(conn, job.pipeline.repo, job.id)
    found = {}
    for each in output.provenance if output else ():
        info = commits.find(conn, each.repo, each.id)
        if info is not None:
            found[each.repo] = info
    return found


def finder(conn: sqlite3.Connection, heads: Callable[[PfsInput], CommitInfo]) -> MatchFinder:
    """A finder of the matches of inputs' globs in the commits that `heads` names, on one connection's snapshot. It
    raises UnfinishedCommit for a commit that is closed and not finished."""

    def find(leaf: PfsInput) -> Iterator[GlobMatch]:
        info = heads(leaf)
        pattern = patterns.glob(leaf.glob)
        for node in trees.glob(contents.settled(conn, info), leaf.glob):
            captures = pattern.match(paths.bare(node.path)) or ()
            yield GlobMatch(node.path, node.hash, node.size, captures, info.commit.id)

    return find


def repo_of(leaf: PfsInput | CronInput) -> Repo:
    """The repo that an input reads."""
    pfs = leaf if isinstance(leaf, PfsInput) else leaf.as_pfs()
    return Repo(pfs.project, pfs.repo, pfs.repo_type)


def read(conn: sqlite3.Connection, chunks: ChunkStore, job: Job) -> JobBase:
    """The base of an open job.

    Its records are read from the content that the meta commit inherits, that of the nearest ancestor without error. So
    they stay true when commits are squashed or dropped, or when a branch is set back. If the output inherits from
    another job than the meta commit, the records of both are ignored. UnfinishedCommit if that ancestor is closed and
    not finished.
    """
    output, meta = commits.resolve(conn, job.output), commits.resolve(conn, job.meta)
    below = [_base(conn, info) for info in (output, meta)]
    own = FileSet(conn, contents.diff_layers(conn, meta))
    done = {
        identity: replace(record, inputs=())
        for identity, record in _records(own, chunks, datum_records.decode)
        if record.job == job
    }
    if len({info.commit.id if info else "" for info in below}) > 1:
        tags = {row[1] for info in below if info for row in contents.fileset(conn, info).rows()}
        return JobBase({}, done, tuple(sorted(tags - done.keys())))
    inherited = FileSet(conn, contents.layers(conn, below[1]) if below[1] else ())
    return JobBase(dict(_records(inherited, chunks, _comparable)), done)


def files(conn: sqlite3.Connection, job: Job) -> FileSet:
    """The content of a job's meta commit; of an open commit, what it has so far."""
    meta = commits.find(conn, job.pipeline.meta_repo, job.id)
    return contents.fileset(conn, meta) if meta else FileSet(conn, ())


def listed(found: FileSet, chunks: ChunkStore, after: str = "") -> Iterator[datum_records.DatumRecord]:
    """The records in the content of a meta commit, sorted by datum id, starting past `after`. Streams."""
    lower = datum_records.meta_path(after) + "\0" if after else None
    for _, record in _records(found, chunks, datum_records.decode, lower):
        yield record


def record(conn: sqlite3.Connection, chunks: ChunkStore, job: Job, identity: str) -> datum_records.DatumRecord:
    """The record of one datum; PachError if the job has none of that id."""
    meta = commits.find(conn, job.pipeline.meta_repo, job.id)
    file = contents.fileset(conn, meta).find(datum_records.meta_path(identity), identity) if meta else None
    if file is None:
        raise PachError(f"datum {identity} not found in job {job}")
    return datum_records.decode(identity, b"".join(chunks.read(file.content, name=file.path)))


def layers(conn: sqlite3.Connection, infos: Iterable[CommitInfo]) -> Mapping[Repo, FileSetRef]:
    """The layers that finished commits read as, by repo."""
    return {info.commit.repo: contents.layers(conn, info) for info in infos}


def _base(conn: sqlite3.Connection, info: CommitInfo) -> CommitInfo | None:
    base = commit_rows.base(conn, info.seq)
    if base is None:
        return None
    found = commits.by_seq(conn, base["seq"])
    contents.check_settled(found)
    return found


def _comparable(_: str, data: bytes) -> str:
    """The part of a record that the next job compares."""
    message = json.loads(data)
    return message["hash"] if datum_records.outcome(message) is DatumOutcome.PROCESSED else ""


def _records(
    files: FileSet, chunks: ChunkStore, read_one: Callable[[str, bytes], T], lower: str | None = None
) -> Iterator[tuple[str, T]]:
    walk = files.walk(datum_records.META_ROOT, lower)
    while some := list(itertools.islice(walk, _BATCH)):
        data = chunks.gather([digest for file in some for digest in file.content.chunks])
        for file in some:
            yield file.tag, read_one(file.tag, b"".join(data[digest] for digest in file.content.chunks))
