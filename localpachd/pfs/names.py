"""Which names projects, repos and branches may have, and how an ancestry expression is read."""

import re

from localpachd import ids
from localpachd.errors import InvalidArgument, PachError

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_PROJECT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")
_PROJECT_LIMIT = 51


def check(name: str) -> None:
    """Refuses a repo, branch or pipeline name that Pachyderm refuses."""
    if not _NAME.fullmatch(name):
        raise PachError(f"name ({name}) invalid: only alphanumeric characters, underscores, and dashes are allowed")


def check_branch(name: str) -> None:
    """Refuses a branch name that Pachyderm refuses."""
    check(name)
    if ids.is_id(name):
        raise PachError(f"branch name cannot be of the form UUID without dashes: {name}")


def check_project(name: str) -> None:
    """Refuses a project name that Pachyderm refuses."""
    if not _PROJECT.fullmatch(name):
        raise InvalidArgument(
            f"name ({name}) invalid: project names must start with an alphanumeric character and contain only "
            "alphanumeric characters, underscores, and dashes"
        )
    if len(name) > _PROJECT_LIMIT:
        excess = len(name) - _PROJECT_LIMIT
        raise InvalidArgument(f"project name {name!r} is {excess} characters longer than the {_PROJECT_LIMIT} max")


def parse_ancestry(expression: str) -> tuple[str, int]:
    """Splits `name^2`, `name~2` or `name.3` into the name and steps: back when positive, counted from the root of the
    history when negative."""
    for position, mark in enumerate(expression):
        if mark not in "^~.":
            continue
        name, rest = expression[:position], expression[position + 1 :]
        if mark == ".":
            return name, -_count(rest, expression, default=1)
        if rest.isdigit():
            return name, int(rest)
        return name, 1 + _run(rest, mark, expression)
    return expression, 0


def _count(digits: str, expression: str, default: int) -> int:
    if not digits:
        return default
    if not digits.isdigit() or int(digits) < 1:
        raise PachError(f"invalid ancestry syntax {expression!r}")
    return int(digits)


def _run(rest: str, mark: str, expression: str) -> int:
    for other in rest:
        if other != mark:
            if other in "^~.":
                raise PachError(f'invalid ancestry syntax "{expression}", cannot mix {mark} and {other} characters')
            raise PachError(f'invalid ancestry syntax "{expression}"')
    return len(rest)
