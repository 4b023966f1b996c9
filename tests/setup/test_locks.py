"""The locks of users and developers hold what pyproject.toml requires, in one version."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pins(lock: str) -> dict[str, set[str]]:
    """The versions of each package in a lock; some have one for each version of Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def required(lines: list[str]) -> set[str]:
    return {re.split(r"[^a-z0-9-]", line, maxsplit=1)[0] for line in lines}


def test_the_locks_hold_what_is_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert required(project["project"]["dependencies"]) <= pins("requirements.lock").keys()
    assert required(project["dependency-groups"]["dev"]) <= pins("requirements-dev.lock").keys()


@pytest.mark.parametrize("tool", ["pytest", "mypy", "ruff", "hypothesis"])
def test_users_do_not_get_the_developers_tools(tool: str) -> None:
    assert tool not in pins("requirements.lock")


def test_the_developers_tools_go_with_the_users_packages() -> None:
    users = pins("requirements.lock")
    developers = pins("requirements-dev.lock")
    assert not {name: developers[name] for name in users.keys() & developers.keys() if users[name] != developers[name]}
