"""A library imported from a tar into a server: its commits made again in order, and their outputs compared.

Nobody can choose the ids of commits, so each says in its description which one it was; from that an import that was
interrupted continues. Each is made on top of the one that it was planned for, or not at all: so of two imports at the
same time one goes on, and nothing is made twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipelines.client import branches, commit_owner
from pipelines.client.commit_history import CommitHistory, PastCommit
from pipelines.client.commit_sets import origins
from pipelines.client.commit_writer import CommitWriter, MovedHeadError
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, PutFile, Repository, write_set
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.specifications.pipeline_specs import SOURCES
from pipelines.transfer.bundle import BundleCommit, PipelineOutput
from pipelines.transfer.bundle_reader import BundleLink, BundleReader, DamagedBundleError
from pipelines.transfer.library_export import code_of, contents


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """A pipeline's output here compared with that in the tar: missing files, extra files, and files whose bytes
    differ. `same_code`: it runs the same command in the same environment."""

    pipeline: str
    same_code: bool
    files: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    differing: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not (self.missing or self.extra or self.differing)


ImportedIds = dict[str, dict[str, str]]
"""The ids that commits have here, by repo and by the id that they had."""


@dataclass(frozen=True, slots=True)
class LibraryImport:
    """The commits of a tar with their ids here, in order, and the outputs that belong to them."""

    commits: tuple[tuple[BundleCommit, str], ...]
    outputs: tuple[PipelineOutput, ...]


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """ids: of the commits that are here already. heads: the newest commit of each repo, "" for none."""

    ids: ImportedIds
    heads: dict[str, str]


def plan(connection: Connection, name: str, commits: Sequence[BundleCommit]) -> ImportPlan:
    """The commits that are here already, and those on which the others are to be made.

    Raises LookalikeError where a repo has other commits than those of the tar `name`: nothing is mixed.
    """
    foreign = {each.repo for each in commits} - SOURCES.keys()
    if foreign:
        raise LookalikeError(f"{name} has commits of {', '.join(sorted(foreign))}, which is not a source repo")
    history = CommitHistory(connection)
    for repo in SOURCES:
        _require_closed(repo, history)
    there = {repo for repo in SOURCES if branches.head(connection, repo, "master")}
    heads = {repo: CommitWriter(connection, repo).newest() if repo in there else "" for repo in SOURCES}
    return ImportPlan({repo: _told_apart(commits, repo, history) for repo in SOURCES}, heads)


def replay(
    connection: Connection,
    reader: BundleReader,
    commits: Sequence[BundleCommit],
    planned: ImportPlan,
    done: Callable[[int], None],
) -> LibraryImport:
    """Makes every commit of a tar, whose list has been read, that is not here yet. `done` hears of the bytes of files.
    Raises LookalikeError at the first commit that is not as it was exported, or if others write to its repo meanwhile;
    those before it stay."""
    here, heads = planned.ids, planned.heads
    try:
        for _, run in groupby(commits, key=lambda commit: commit.id):
            new: dict[str, BundleCommit] = {}
            for commit in run:
                if commit.id in here[commit.repo]:
                    reader.skip(commit)
                else:
                    new[commit.repo] = commit
            if new:
                commit = next(iter(new.values()))
                description = f"{commit.description} (was {commit.id} of {commit.started})".lstrip()
                for repo in new:
                    make_repo(connection, repo)
                edits = {repo: _edits(reader, each, here, done) for repo, each in new.items()}
                onto = {repo: heads[repo] for repo in new}
                made = write_set(connection, edits, description=description, onto=onto)
                for repo in new:
                    here[repo][commit.id] = heads[repo] = made
        outputs = reader.outputs()
    except MovedHeadError as error:
        raise LookalikeError(
            f"others write to the library at the same time, perhaps another import (commit {error.newest}); this one "
            "has stopped, and made nothing twice: run it again when the other has ended, and it continues there"
        ) from error
    except DamagedBundleError as error:
        whole = sum(commit.id in here[commit.repo] for commit in commits)
        raise LookalikeError(
            f"{error}; {_share(whole, len(commits))}: export or copy the file again, and importing it continues there"
        ) from error
    return LibraryImport(tuple((each, here[each.repo][each.id]) for each in commits), outputs)


def table(imported: LibraryImport) -> str:
    """The ids of the commits there and here, as tab-separated values."""
    rows = (f"{each.repo}\t{each.started}\t{each.id}\t{made}\n" for each, made in imported.commits)
    return "repo\tdate\tthere\there\n" + "".join(rows)


def computing(connection: Connection, imported: LibraryImport) -> list[str]:
    """The commit sets that compute the outputs of a tar's pipelines: those of its commits and, for a pipeline created
    later, that of its creation."""
    jobs = ProjectJobs(connection)
    there = connection.retry(jobs.pipelines)
    names = [each.pipeline for each in imported.outputs if each.pipeline in there]
    newest = [connection.retry(jobs.newest, name) for name in names]
    ids = (new for _, new in imported.commits)
    return list(dict.fromkeys([*ids, *(job.id for job in newest if job is not None)]))


def compare(connection: Connection, outputs: Iterable[PipelineOutput]) -> Iterator[OutputComparison]:
    """Each pipeline's present output compared with that in the tar, byte by byte; missing pipelines are left out."""
    infos = connection.retry(ProjectJobs(connection).pipelines)
    for output in outputs:
        if output.pipeline in infos:
            same = code_of(infos[output.pipeline]) == output.code
            yield _compared(output, connection.retry(_contents, connection, output.pipeline), same)


def _contents(connection: Connection, pipeline: str) -> dict[str, str]:
    repo = Repository(connection, pipeline).good()
    return contents(repo) if repo is not None else {}


def _compared(output: PipelineOutput, here: Mapping[str, str], same_code: bool) -> OutputComparison:
    there = output.files
    return OutputComparison(
        output.pipeline,
        same_code,
        len(there),
        tuple(sorted(there.keys() - here.keys())),
        tuple(sorted(here.keys() - there.keys())),
        tuple(sorted(path for path in there.keys() & here.keys() if there[path] != here[path])),
    )


def _require_closed(repo: str, history: CommitHistory) -> None:
    """Raises LookalikeError if a commit is open that is not lookalike's: those are waited for."""
    found = history.left_open(repo)
    if found is not None and not commit_owner.read(found.description):
        raise LookalikeError(
            f"commit {found.id} of {repo} is open: wait for its writer (`lookalike commits {repo}` lists it), or "
            f"finish it with `pachctl finish commit {repo}@{found.id}`; then import again"
        )


def _told_apart(commits: Sequence[BundleCommit], repo: str, history: CommitHistory) -> dict[str, str]:
    """The commits of the tar that are in a repo already: their old ids with their new ones. Raises LookalikeError
    unless they are the first of the tar, and the only ones that changed anything."""
    wanted = [each.id for each in commits if each.repo == repo]
    made = [each for each in history.commits(repo) if _was(each) or each.id in wanted or history.pairs(repo, each.id)]
    were = [each.id if each.id in wanted else _was(each) for each in made]  # its own if the tar was exported here
    if were != wanted[: len(were)]:
        raise LookalikeError(
            f"{repo} has commits of another library: import into a project or a server whose repos "
            f"{', '.join(SOURCES)} are empty, or delete them first (`pachctl delete repo {repo}`)"
        )
    return {was: each.id for was, each in zip(were, made, strict=True)}


def _was(commit: PastCommit) -> str:
    """The id that an imported commit had where it was exported; "" for others."""
    before = origins(commit.description)
    return before[-1].id if before else ""


def _edits(
    reader: BundleReader, commit: BundleCommit, here: ImportedIds, done: Callable[[int], None]
) -> Iterator[FileEdit]:
    """The edits of a commit, as it is read; raises Damaged at their end unless all of it is as it was exported."""
    for path in reader.removed(commit):
        yield DeleteFile(path)
    for each in reader.files(commit):
        if isinstance(each, BundleLink):
            yield CopyFile(each.path, each.repo, here[each.repo][each.commit], each.source)
        else:
            yield PutFile(each.path, _counted(each.content, done))


def _share(whole: int, commits: int) -> str:
    if not whole:
        return "no commit was imported"
    if whole == commits:
        return "all of its commits are imported"
    return f"imported the first {whole} of its {commits} commits"


def _counted(pieces: Iterable[bytes], done: Callable[[int], None]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        done(len(piece))
