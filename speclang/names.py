"""The names that Pachyderm accepts for repos, branches, pipelines and projects."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

DEFAULT_PROJECT = "default"
PIPELINE_LIMIT = 51
PROJECT_LIMIT = 51
KUBERNETES_LIMIT = 63
"""The length of a label in Kubernetes: the name of a pipeline's replication controller is one."""

_NAME = re.compile(r"[a-zA-Z0-9_-]+")


class NameRule(Enum):
    """A rule of names."""

    CHARACTERS = auto()
    """A name has at least one character, and only letters, digits, underscores and dashes."""

    BEGINNING = auto()
    """It begins with a letter or a digit."""

    LENGTH = auto()
    """It is not longer than its limit."""

    KUBERNETES = auto()
    """The name that Kubernetes gives to the pipeline is not longer than its limit."""


@dataclass(frozen=True, slots=True)
class NameFault:
    """A rule that a name breaks. Of the rules of length, `excess` is how many characters are too many."""

    rule: NameRule
    excess: int = 0


def is_name(name: str) -> bool:
    """Whether a name has the characters that every repo, branch, pipeline and project may have."""
    return _NAME.fullmatch(name) is not None


def pipeline_faults(name: str, project: str) -> Iterator[NameFault]:
    """The rules that the name of a pipeline breaks, in the order in which Pachyderm looks."""
    yield from _spelling(name)
    yield from _length(NameRule.LENGTH, name, PIPELINE_LIMIT)
    yield from _length(NameRule.KUBERNETES, kubernetes_name(name, project), KUBERNETES_LIMIT)


def project_faults(name: str) -> Iterator[NameFault]:
    """The rules that the name of a project breaks, in the order in which Pachyderm looks."""
    if name != DEFAULT_PROJECT:
        yield from _length(NameRule.LENGTH, name, PROJECT_LIMIT)
        yield from _spelling(name)


def kubernetes_name(pipeline: str, project: str) -> str:
    """The name that a pipeline's replication controller has on a cluster after many updates."""
    return f"{project}-{pipeline}-v99".replace("_", "-").lower()


def _spelling(name: str) -> Iterator[NameFault]:
    if not is_name(name):
        yield NameFault(NameRule.CHARACTERS)
    elif not name[0].isalnum():
        yield NameFault(NameRule.BEGINNING)


def _length(rule: NameRule, name: str, limit: int) -> Iterator[NameFault]:
    if len(name) > limit:
        yield NameFault(rule, len(name) - limit)
