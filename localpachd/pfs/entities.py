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
        """What Pachyderm sorts lists of branches by."""
        return f"{self.repo.project}/{self.repo.name}.{self.repo.type}@{self.name}"

    def __str__(self) -> str:
        return f"{self.repo}@{self.name}"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by repo and id. In a request the id may be empty (the branch's head) or an ancestry expression;
    in an answer the branch is where the commit was made, for information only."""

    repo: Repo
    id: str = ""
    branch: str = ""

    def __str__(self) -> str:
        return f"{self.repo}@{self.id or self.branch}"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What is known about a commit. Times in nanoseconds since the epoch; `size` in bytes, once its content was looked
    through: not while it is open, and not when it was closed as failed."""

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


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """What is known about a branch; `provenance` and `subvenance` are transitive. All three lists go by branch keys.
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
    """What is known about a repo; `size` is that of the newest finished commit on master, in bytes."""

    repo: Repo
    created: int
    description: str
    branches: tuple[Branch, ...]
    size: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """What is known about a project."""

    name: str
    description: str
    created: int
    metadata: Mapping[str, str]
