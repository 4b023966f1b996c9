"""Projects, repos, branches and commits: references to them, and their state as frozen values that cross rooms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

USER = "user"
SPEC = "spec"
META = "meta"
FILE_SETS = "__filesets__"
"""The name of the repo, in any project, whose commits are file sets by their ids."""


@dataclass(frozen=True, slots=True, order=True)
class Repo:
    """A repo by project, name and type (user, spec or meta)."""

    project: str
    name: str
    type: str = USER

    def __str__(self) -> str:
        return f"{self.project}/{self.name}" + ("" if self.type == USER else f".{self.type}")


@dataclass(frozen=True, slots=True, order=True)
class Branch:
    """A branch by repo and name."""

    repo: Repo
    name: str

    @property
    def key(self) -> str:
        """The key by which Pachyderm sorts lists of branches."""
        return f"{self.repo.project}/{self.repo.name}.{self.repo.type}@{self.name}"

    def __str__(self) -> str:
        return f"{self.repo}@{self.name}"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by repo and id. In a request the id may be empty (the branch's head) or an ancestry expression;
    in a response the branch is the one that the commit was made on, for information only."""

    repo: Repo
    id: str = ""
    branch: str = ""

    def __str__(self) -> str:
        return f"{self.repo}@{self.id or self.branch}"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The state of a commit. Times in nanoseconds since the epoch; `size` in bytes, None while it is open and if it was
    closed with an error."""

    seq: int
    commit: Commit
    origin: str
    description: str
    parent: Commit | None
    children: tuple[Commit, ...]
    started: int
    finishing: int | None
    finished: int | None
    provenance: tuple[Commit, ...]
    error: str
    size: int | None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def closed(self) -> bool:
        """Whether it is closed, but not finished yet."""
        return self.finishing is not None and self.finished is None


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """The state of a branch. `provenance` and `subvenance` are transitive; all three lists are sorted by branch key.
    `created` is in nanoseconds since the epoch."""

    branch: Branch
    head: Commit
    provenance: tuple[Branch, ...]
    subvenance: tuple[Branch, ...]
    direct_provenance: tuple[Branch, ...]
    trigger: Mapping[str, Any] | None
    created: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RepoInfo:
    """The state of a repo; `size` is that of the newest finished commit on master, in bytes."""

    repo: Repo
    created: int
    description: str
    branches: tuple[Branch, ...]
    size: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """The state of a project."""

    name: str
    description: str
    created: int
    metadata: Mapping[str, str]
