"""Valid names of projects, repos and branches, and ancestry expressions."""

import re

from localpachd import ids
from localpachd.errors import PachError
from localpachd.pfs.pfs_entities import FILE_SETS
from speclang.names import PROJECT_LIMIT, NameFault, NameRule, is_name, project_faults

_COUNT = re.compile(r"[+-]?[0-9]+")
_DIGITS = 18
"""Digits, with the sign, that surely fit into 64 bits."""


def check(name: str) -> None:
    """Refuses a repo or branch name that Pachyderm refuses."""
    if not is_name(name):
        raise PachError(characters(name))


def characters(name: str) -> str:
    """Pachyderm's text about a name with characters that are not allowed."""
    return f"name ({name}) invalid: only alphanumeric characters, underscores, and dashes are allowed"


def check_repo(name: str) -> None:
    """Refuses a repo name that Pachyderm refuses or reserves."""
    if name == FILE_SETS:
        raise PachError(f"{FILE_SETS} is a reserved name")
    check(name)


def check_branch(name: str) -> None:
    """Refuses a branch name that Pachyderm refuses."""
    check(name)
    if ids.is_id(name):
        raise PachError("bad key: branch name cannot be a UUID V4")


def check_project(name: str) -> None:
    """Refuses a project name that Pachyderm refuses."""
    for fault in project_faults(name):
        raise PachError(f"invalid project name: {_said(name, fault)}")


def parse_ancestry(expression: str) -> tuple[str, int]:
    """Splits `name^2`, `name~2` or `name.3` into the name and steps: back when positive, counted from the root of the
    history when negative. Without a number, each mark is one step."""
    place = next((place for place, letter in enumerate(expression) if letter in "^~."), None)
    if place is None:
        return expression, 0
    name, mark, rest = expression[:place], expression[place], expression[place + 1 :]
    if _COUNT.fullmatch(rest) and len(rest) <= _DIGITS:  # a longer one is not a number to Pachyderm
        return name, -int(rest) if mark == "." else int(rest)
    for other in rest:
        if other != mark:
            raise PachError(f'invalid ancestry syntax "{expression}", cannot mix {mark} and {other} characters')
    marks = 1 + len(rest)
    return name, -marks if mark == "." else marks


def _said(name: str, fault: NameFault) -> str:
    match fault.rule:
        case NameRule.LENGTH:
            return f'project name "{name}" is {fault.excess} characters longer than the {PROJECT_LIMIT} max'
        case NameRule.BEGINNING:
            return "project names must start with an alphanumeric character"
    return characters(name)
