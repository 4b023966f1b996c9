"""A library imported from a bundle into a server: its commits made again in order, and their outputs compared.

Nobody can choose the ids of commits, so each says in its description which one it was; from that an import that was
interrupted continues, and the table of ids is made.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.client.connection import Connection
from pipelines.client.deployment import make_repo
from pipelines.client.history import History, PastCommit
from pipelines.client.jobs import Jobs
from pipelines.client.repository import Put, Remove, Repository
from pipelines.errors import LookalikeError
from pipelines.moving.bundle import Bundle, Commit, Manifest, Output
from pipelines.moving.exporting import code_of, contents
from pipelines.specifications.reading import SOURCES

_WAS = re.compile(r"\(was ([0-9a-f]{32}) of ([^()]+)\)\Z")
_TABLE = "ids.tsv"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A pipeline's output here compared with that in the bundle: missing files, extra files, and files whose bytes
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


def replay(connection: Connection, bundle: Bundle, done: Callable[[int], None]) -> list[tuple[Commit, str]]:
    """Makes every commit of a bundle that is not here yet, and returns all of them with their ids here, in order.
    `done` hears of each. Writes the table of ids into the bundle's directory.

    Raises LookalikeError where a repo has other commits than those of the bundle: nothing is mixed.
    """
    manifest = bundle.read()
    foreign = {each.repo for each in manifest.commits} - SOURCES.keys()
    if foreign:
        raise LookalikeError(
            f"{bundle.directory} has commits of {', '.join(sorted(foreign))}, which is not a source repo"
        )
    history = History(connection)
    here = {repo: _told_apart(manifest, repo, history) for repo in SOURCES}
    todo = [each for each in manifest.commits if each.id not in here[each.repo]]
    bundle.check(todo)
    for repo in sorted({each.repo for each in todo}):
        make_repo(connection, repo)
    for commit in manifest.commits:
        if commit.id not in here[commit.repo]:
            description = f"{commit.description} (was {commit.id} of {commit.started})".lstrip()
            made = Repository(connection, commit.repo).write_as(description, _changes(bundle, commit))
            here[commit.repo][commit.id] = made
        done(1)
    pairs = [(each, here[each.repo][each.id]) for each in manifest.commits]
    rows = [f"{each.repo}\t{each.started}\t{each.id}\t{made}\n" for each, made in pairs]
    (bundle.directory / _TABLE).write_text("repo\tdate\tthere\there\n" + "".join(rows))
    return pairs


def computing(connection: Connection, manifest: Manifest, made: Sequence[tuple[Commit, str]]) -> list[str]:
    """The commit sets that compute the outputs of a bundle's pipelines: those of its commits and, for a pipeline
    created later, that of its creation."""
    jobs = Jobs(connection)
    there = jobs.pipelines()
    newest = (jobs.newest(each.pipeline) for each in manifest.outputs if each.pipeline in there)
    return list(dict.fromkeys([*(new for _, new in made), *(job.id for job in newest if job is not None)]))


def compare(connection: Connection, manifest: Manifest) -> Iterator[Comparison]:
    """Each pipeline's present output compared with that in the bundle, byte by byte; missing pipelines are left
    out."""
    infos = Jobs(connection).pipelines()
    for output in manifest.outputs:
        repo = Repository(connection, output.pipeline).good() if output.pipeline in infos else None
        if output.pipeline in infos:
            same = code_of(infos[output.pipeline]) == output.code
            yield _compared(output, contents(repo) if repo is not None else {}, same)


def _compared(output: Output, here: Mapping[str, str], same_code: bool) -> Comparison:
    there = output.files
    return Comparison(
        output.pipeline,
        same_code,
        len(there),
        tuple(sorted(there.keys() - here.keys())),
        tuple(sorted(here.keys() - there.keys())),
        tuple(sorted(path for path in there.keys() & here.keys() if there[path] != here[path])),
    )


def _told_apart(manifest: Manifest, repo: str, history: History) -> dict[str, str]:
    """The commits of the bundle that are in a repo already: their old ids with their new ones. Raises LookalikeError
    unless they are the first of the bundle, and the only ones that changed anything."""
    wanted = [each.id for each in manifest.commits if each.repo == repo]
    made = [each for each in history.commits(repo) if _WAS.search(each.description) or any(history.changes(each))]
    were = [each.id if each.id in wanted else _was(each) for each in made]  # its own if the bundle was exported here
    if were != wanted[: len(were)]:
        raise LookalikeError(
            f"{repo} has commits of another library: import into a project or a server whose repos "
            f"{', '.join(SOURCES)} are empty, or delete them first (`pachctl delete repo {repo}`)"
        )
    return {was: each.id for was, each in zip(were, made, strict=True)}


def _was(commit: PastCommit) -> str:
    """The id that an imported commit had where it was exported; "" for others."""
    found = _WAS.search(commit.description)
    return found[1] if found else ""


def _changes(bundle: Bundle, commit: Commit) -> Iterator[Put | Remove]:
    for change in commit.changes:
        yield Put(change.path, bundle.content(change.sha256)) if change.sha256 else Remove(change.path)
