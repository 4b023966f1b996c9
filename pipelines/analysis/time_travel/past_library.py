"""The library of an earlier time: the variables of its pipelines then, the stages that have changed since, and the
content of its repos."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.client import commit_sets
from pipelines.client.commit_history import CommitHistory
from pipelines.client.commit_tree import CommitTree
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.specifications import pipeline_specs
from stages.backbone.backbone_spec import SPEC_FILE, BackboneSpec, parse_spec
from stages.datum.contract import StageError
from stages.datum.stage_version import STAGE
from stages.datum.text_format import enumerated

LIBRARY = ("preprocess", "features", "partition", "index")
"""The pipelines from the library's files to its index, upstream first."""

QUERIES = ("preprocess-queries", "features-queries", "search", "render")
"""The pipelines from a query to its answer, upstream first."""

_IMAGE_SIZE = "IMAGE_SIZE"
_SEGMENT_DIGITS = "SEGMENT_DIGITS"
_DIGITS = 12

StageEnvironment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PastLibrary:
    """A library at a commit set: its id, and the variables of its pipelines by name, as far as they existed then."""

    id: str
    environments: Mapping[str, StageEnvironment]

    @property
    def short(self) -> str:
        """The id, for messages and names of directories."""
        return self.id[:_DIGITS]

    def empty(self) -> LookalikeError:
        """The error if there was nothing to compare with."""
        return LookalikeError(
            f"the library was empty at commit {self.short}: name a later one; `lookalike history` lists them"
        )


def read(connection: Connection, commit: str) -> PastLibrary:
    """The pipelines of a commit set as they were then."""
    infos = connection.retry(ProjectJobs(connection).pipelines, commit)
    wanted = (*LIBRARY, *QUERIES)
    return PastLibrary(commit, {name: dict(infos[name].details.transform.env) for name in wanted if name in infos})


def answering_commit(connection: Connection, commit: str) -> str:
    """The commit set whose answers stood when this one began: itself, unless no pipeline connects it with the index, as
    for a commit of labels."""
    try:
        if CommitTree.at(connection, LIBRARY[-1], commit) is not None:
            return commit
    except LookalikeError:  # a failed or unfinished one: the question tells why there is no answer
        return commit
    began = connection.retry(commit_sets.start_time, connection, commit)
    listed = connection.retry(commit_sets.list_commit_sets, connection)
    stood = (each.id for each in listed if began and each.good and each.started <= began)
    return next(stood, commit)


def source(connection: Connection, repo: str, commit: str) -> CommitTree | None:
    """A repo's files at a commit set. Where no pipeline connects the two, those of its newest commit at that time; None
    if it had none. Raises LookalikeError if the commit failed, or is not finished."""
    found = CommitTree.at(connection, repo, commit)
    if found is not None:
        return found
    began = connection.retry(commit_sets.start_time, connection, commit)
    commits = connection.retry(CommitHistory(connection).commits, repo)
    before = [each.id for each in commits if began is not None and each.started <= began]
    return CommitTree.at(connection, repo, before[-1]) if before else None


def backbone(models: CommitTree | None, commit: str) -> tuple[CommitTree, BackboneSpec]:
    """The files of the repo models at a commit set, and the backbone in them. Raises LookalikeError, with the way out,
    if there was none that is valid."""
    content = None if models is None else models.read(SPEC_FILE)
    if models is None or content is None:
        raise LookalikeError(
            f"at commit {commit[:_DIGITS]} the repo models held no backbone, so nothing was compared then: `lookalike "
            "commits models` lists those that it held"
        )
    try:
        return models, parse_spec(content)
    except StageError as error:
        raise LookalikeError(f"at commit {commit[:_DIGITS]} the repo models held no valid backbone: {error}") from error


def shipped_environments() -> dict[str, StageEnvironment]:
    """The variables of the specifications that ship with this code."""
    return {spec.name: dict(spec.request().transform.env) for spec in pipeline_specs.load(pipeline_specs.SHIPPED_SPECS)}


def differences(past: PastLibrary, now: Mapping[str, StageEnvironment]) -> dict[str, str]:
    """The pipelines that did not exist then, or ran another version of their stage than this code's, with the words for
    it; upstream first."""
    found = {}
    for name in (*LIBRARY, *QUERIES):
        then = past.environments.get(name)
        if then is None:
            found[name] = "did not exist, or was deleted since"
        elif then.get(STAGE, "") != now[name].get(STAGE):
            found[name] = f"ran {then.get(STAGE) or 'a stage without a version'}, and this code has {now[name][STAGE]}"
    return found


def check(past: PastLibrary, now: Mapping[str, StageEnvironment]) -> None:
    """Raises LookalikeError, with the way out, if this code would not answer as that of then."""
    different = differences(past, now)
    if different:
        words = "; ".join(f"{name} {how}" for name, how in different.items())
        again = [name for name in LIBRARY if name in different]
        price = (
            f"computes {enumerated(LIBRARY[LIBRARY.index(again[0]) :])} of the whole library again"
            if again
            else "answers"
        )
        raise LookalikeError(
            f"at commit {past.short} {words}: the answer could differ from the one at that time. --with-todays-code "
            f"{price} with the code of today"
        )


def with_todays_code(past: PastLibrary, now: Mapping[str, StageEnvironment], image_size: int) -> PastLibrary:
    """The past with the stages of this code: variables of then where it had them, of today where it had not. A pipeline
    that did not exist makes pictures of the size that the backbone takes, and segments as features made them before
    there was partition."""
    sizes = {_IMAGE_SIZE: str(image_size)}
    sizes |= {key: value for key, value in past.environments.get("features", {}).items() if key == _SEGMENT_DIGITS}
    environments = {}
    for name in (*LIBRARY, *QUERIES):
        then = past.environments.get(name)
        if then is None:
            then = {key: value for key, value in sizes.items() if key in now[name]}
        environments[name] = {**now[name], **then, STAGE: now[name][STAGE]}
    return PastLibrary(past.id, environments)


def recomputed(past: PastLibrary, now: Mapping[str, StageEnvironment]) -> tuple[str, ...]:
    """The pipelines of the library whose output of then this code cannot read: the first with another stage, and all
    behind it."""
    different = differences(past, now)
    first = next((place for place, name in enumerate(LIBRARY) if name in different), len(LIBRARY))
    return LIBRARY[first:]
