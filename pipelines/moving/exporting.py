"""A library exported from a server: the history of its source repos and the pipelines' outputs, into a bundle."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipelines.client.connection import Connection
from pipelines.client.history import History, PastCommit
from pipelines.client.jobs import Jobs
from pipelines.client.repository import Repository
from pipelines.errors import LookalikeError
from pipelines.moving.bundle import Bundle, Commit, ExportedChange, Manifest, Output
from pipelines.specifications.reading import SOURCES


def export(connection: Connection, bundle: Bundle, pipelines: Sequence[str], done: Callable[[int], None]) -> Manifest:
    """Writes every good commit of the source repos, and the present outputs of these pipelines, upstream first. `done`
    is called for each commit and each pipeline. Content of an earlier export is not fetched again. Raises
    LookalikeError if the bundle is of another library, whose history would be lost."""
    history = History(connection)
    before = bundle.known()
    known = {change.hash: change.sha256 for each in before.commits for change in each.changes} if before else {}
    made = sorted((each for repo in SOURCES for each in history.commits(repo)), key=lambda each: each.started)
    if before is not None:
        _check_same(bundle, before, made)
    commits: list[Commit] = []
    bundle.directory.mkdir(parents=True, exist_ok=True)
    for each in made:
        changes = tuple(_changes(connection, history, bundle, each, known))
        if changes:  # the commit with which a pipeline gives its input a branch has none
            commits.append(Commit(each.repo, each.id, each.started.isoformat(), each.description, changes))
        done(1)
    outputs = []
    infos = Jobs(connection).pipelines()
    for name in pipelines:
        repo = Repository(connection, name).good() if name in infos else None
        if repo is not None:
            outputs.append(Output(name, code_of(infos[name]), repo.at, contents(repo)))
        done(1)
    manifest = Manifest(f"{connection.address}, project {connection.project}", tuple(commits), tuple(outputs))
    bundle.write(manifest)
    return manifest


def code_of(info: Any) -> str:
    """A hash of a pipeline's code (PipelineInfo with details): its command and its environment, not its image."""
    transform = info.details.transform
    code = [list(transform.cmd), list(transform.stdin), sorted(transform.env.items())]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def contents(repo: Repository) -> dict[str, str]:
    """The sha256 of every file of a repo, by path."""
    found = {}
    for path in sorted(repo.hashes("/")):
        digest = hashlib.sha256()
        for piece in repo.pieces(path):
            digest.update(piece)
        found[path] = digest.hexdigest()
    return found


def _check_same(bundle: Bundle, before: Manifest, made: Sequence[PastCommit]) -> None:
    here = {(each.repo, each.id) for each in made}
    gone = [each for each in before.commits if (each.repo, each.id) not in here]
    if gone:
        raise LookalikeError(
            f"{bundle.directory} holds the library of {before.server} with commits that this server lacks, such as "
            f"{gone[0].repo}@{gone[0].id}: export to a new directory, or remove that one"
        )


def _changes(
    connection: Connection, history: History, bundle: Bundle, made: PastCommit, known: dict[str, str]
) -> Iterator[ExportedChange]:
    repo = Repository(connection, made.repo, made.id)
    for change in history.changes(made):
        sha256 = known.get(change.hash, "") if change.hash else ""
        if change.hash and not (sha256 and bundle.content(sha256).exists()):
            known[change.hash] = sha256 = bundle.keep(repo.pieces(change.path))
        yield ExportedChange(change.path, sha256, change.hash)
