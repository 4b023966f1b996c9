"""A library exported from a server: the history of its source repos and the hashes of the pipelines' outputs, as one
tar."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.client.commit_history import CommitHistory
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from pipelines.specifications.pipeline_specs import SOURCES
from pipelines.transfer.bundle import BundleCommit, PipelineOutput
from pipelines.transfer.bundle_writer import BundleWriter
from pipelines.transfer.export_targets import ExportTarget
from stages.record import masks

_CHEAP = 1 << 20
"""Bytes of files in between that are cheaper to receive than another call would be."""


@dataclass(frozen=True, slots=True)
class ExportCommit:
    """A commit to export, the files that it removed, and those that it wrote."""

    commit: BundleCommit
    removed: list[str]
    put: list[StoredFile]


def plan(connection: Connection) -> tuple[ExportCommit, ...]:
    """Every good commit of the source repos that changed anything, in the order in which they were made; those of one
    set next to each other, also one of `images` whose set changed nothing but masks."""
    history = CommitHistory(connection)
    made = [each for repo in SOURCES for each in history.commits(repo)]
    changes = {each: sorted(history.pairs(each.repo, each.id), key=lambda pair: pair.path) for each in made}
    changed = {each.id for each, pairs in changes.items() if pairs}
    began = {each.id: each.started for each in reversed(made)}  # one time for all commits of a set
    found = []
    for each in sorted(made, key=lambda each: (began[each.id], each.id)):
        pairs = changes[each]
        # The commit with which a pipeline gives its input a branch changes nothing, and that of `masks` in most sets.
        if pairs or (each.repo != masks.REPO and each.id in changed):
            put = [pair.new for pair in pairs if pair.new is not None]
            facts = each.repo, each.id, each.started.isoformat(), each.description
            commit = BundleCommit(*facts, len(put), sum(file.size for file in put))
            found.append(ExportCommit(commit, [pair.path for pair in pairs if pair.new is None], put))
    return tuple(found)


def export(
    connection: Connection, planned: Sequence[ExportCommit], target: ExportTarget, done: Callable[[int], None]
) -> None:
    """Writes the commits. `done` hears of the bytes of their files."""
    trees = {repo: _Tree() for repo in SOURCES}
    known: dict[str, tuple[str, str]] = {}
    for each in planned:
        commit = each.commit
        trees[commit.repo].apply(each)
        sums = target.recall(commit)
        if sums is None:
            sums = _write(connection, each, trees[commit.repo], known, target.writer, done)
        else:
            done(commit.bytes)
        for file in each.put:
            name = commit.name + file.path
            known.setdefault(file.hash, (name, sums[name]))


def finish(connection: Connection, pipelines: Sequence[str], target: ExportTarget, done: Callable[[int], None]) -> int:
    """Writes the hashes of the present outputs of these pipelines, upstream first, and the end of the tar; returns the
    number of outputs. `done` hears of each pipeline."""
    infos = ProjectJobs(connection).pipelines()
    written = 0
    for name in pipelines:
        repo = Repository(connection, name).good() if name in infos else None
        if repo is not None:
            target.writer.output(PipelineOutput(name, code_of(infos[name]), repo.at, contents(repo)))
            written += 1
        done(1)
    target.writer.end()
    return written


def code_of(info: Any) -> str:
    """A hash of a pipeline's code (PipelineInfo with details): its command and its environment, not its image."""
    transform = info.details.transform
    code = [list(transform.cmd), list(transform.stdin), sorted(transform.env.items())]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def contents(repo: Repository) -> dict[str, str]:
    """The sha256 of every file of a repo, by path, in one call."""
    found = {}
    for path, _, content in repo.stream("/"):
        digest = hashlib.sha256()
        for piece in content:
            digest.update(piece)
        found[path] = digest.hexdigest()
    return found


def _write(
    connection: Connection,
    planned: ExportCommit,
    tree: "_Tree",
    known: Mapping[str, tuple[str, str]],
    writer: BundleWriter,
    done: Callable[[int], None],
) -> Mapping[str, str]:
    """Writes a commit: the content of its files from the server, in few calls, or links to the members that `known` has
    for a hash, with their sha256. Returns the sha256 of its members by name."""
    commit = planned.commit
    writer.begin(commit, planned.removed)
    wanted = {file.path for file in planned.put if file.hash not in known}
    repo = Repository(connection, commit.repo, commit.id)
    for first, last in tree.runs(wanted):
        for path, size, content in repo.stream("/**", first, last):
            if path in wanted:
                writer.file(commit.name + path, size, content, done)
                wanted.remove(path)
    if wanted:
        raise LookalikeError(f"the server no longer has {commit.repo}@{commit.id}:{min(wanted)}: export again")
    for file in planned.put:
        if file.hash in known:
            writer.link(commit.name + file.path, *known[file.hash])
            done(file.size)
    return writer.seal(commit.name)


@dataclass(slots=True)
class _Tree:
    """The files of a repo as of one commit, with their sizes."""

    sizes: dict[str, int] = field(default_factory=dict)

    def apply(self, commit: ExportCommit) -> None:
        """Makes it the tree of the next commit."""
        for path in commit.removed:
            self.sizes.pop(path, None)
        self.sizes |= {file.path: file.size for file in commit.put}

    def runs(self, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
        """The first and the last path of ranges that hold these files and few bytes of others."""
        if len(wanted) == 1:
            yield min(wanted), min(wanted)
            return
        run: list[str] = []
        between = 0
        for path in sorted(self.sizes):
            if path not in wanted:
                between += self.sizes[path]
                continue
            if run and between > _CHEAP:
                yield run[0], run[-1]
                run = []
            run, between = [*run[:1], path], 0
        if run:
            yield run[0], run[-1]
