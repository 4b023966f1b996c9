"""Which names projects, repos and branches may have, and how an ancestry expression is read."""

import re

from localpachd import ids
from localpachd.errors import PachError
from localpachd.pfs.entities import DEFAULT_PROJECT, FILE_SETS

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_PROJECT_LIMIT = 51
_COUNT = re.compile(r"[+-]?[0-9]+")


def check(name: str) -> None:
    """Refuses a repo, branch or pipeline name that Pachyderm refuses."""
    if not _NAME.fullmatch(name):
        raise PachError(f"name ({name}) invalid: only alphanumeric characters, underscores, and dashes are allowed")


def check_repo(name: str) -> None:
    """Refuses a repo name that Pachyderm refuses, or keeps for itself."""
    if name == FILE_SETS:
        raise PachError(f"{FILE_SETS} is a reserved name")
    check(name)


def check_branch(name: str) -> None:
    """Refuses a branch name that Pachyderm refuses."""
    check(name)
    if ids.is_id(name):
        raise PachError("branch name cannot be a UUID V4")


def check_project(name: str) -> None:
    """Refuses a project name that Pachyderm refuses."""
    if name == DEFAULT_PROJECT:
        return
    if len(name) > _PROJECT_LIMIT:
        excess = len(name) - _PROJECT_LIMIT
        raise PachError(
            f'invalid project name: project name "{name}" is {excess} characters longer than the {_PROJECT_LIMIT} max'
        )
    try:
        check(name)
    except PachError as error:
        raise PachError(f"invalid project name: {error}") from None
    if not name[0].isalnum():
        raise PachError("invalid project name: project names must start with an alphanumeric character")


def parse_ancestry(expression: str) -> tuple[str, int]:
    """Splits `name^2`, `name~2` or `name.3` into the name and steps: back when positive, counted from the root of the
    history when negative. Without a number, each mark is one step."""
    place = next((place for place, letter in enumerate(expression) if letter in "^~."), None)
    if place is None:
        return expression, 0
    name, mark, rest = expression[:place], expression[place], expression[place + 1 :]
    if _COUNT.fullmatch(rest):
        return name, -int(rest) if mark == "." else int(rest)
    for other in rest:
        if other != mark:
            raise PachError(f'invalid ancestry syntax "{expression}", cannot mix {mark} and {other} characters')
    marks = 1 + len(rest)
    return name, -marks if mark == "." else marks
