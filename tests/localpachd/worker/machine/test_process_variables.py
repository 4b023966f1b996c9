"""Variables reach a command without loss, and no program before it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.machine import process_variables
from tests.example_counts import examples

_TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
_NAMES = st.one_of(
    st.text(st.characters(exclude_characters="\0=", codec="utf-8"), min_size=1),
    st.sampled_from(["IFS", "PATH", "PWD", "ENV", "UID", "PPID", "OPTIND", "PS4", "_x", "a-b", "BASH_FUNC_x%%", "-n"]),
)
# The shell that sets the others sets or drops these.
_OF_SHELLS = {"PWD", "OLDPWD", "SHLVL", "_"}


def received(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command finds which gets these."""
    with process_variables.carry_variables(env, ["/usr/bin/env", "-0"]) as (command, file):
        found = subprocess.run(
            command, env=process_variables.tool_variables(), pass_fds=(file,), capture_output=True, check=True
        )
    pairs = (os.fsdecode(each).partition("=") for each in found.stdout.split(b"\0") if each)
    return {name: value for name, _, value in pairs}


@given(st.dictionaries(_NAMES, _TEXT, max_size=6))
@settings(max_examples=examples(60))
def test_all_variables_arrive(env: dict[str, str]) -> None:
    found = received(env)
    assert {name: found[name] for name in env} == env
    assert found.keys() - env.keys() <= _OF_SHELLS | process_variables.tool_variables().keys()


def test_a_value_as_long_as_linux_allows() -> None:
    value = "it's " * 26_000
    assert received({"LONG": value})["LONG"] == value


def test_bytes_that_are_not_text() -> None:
    value = os.fsdecode(bytes(range(1, 256)))
    assert received({"BYTES": value})["BYTES"] == value


def test_no_value_is_an_argument() -> None:
    """All users of a machine can read arguments."""
    with process_variables.carry_variables({"WORD": "open sesame"}, ["true"], ["WORD"]) as (command, _):
        assert not [each for each in command if "sesame" in each]


def test_a_secret_needs_a_name_that_shells_can_set() -> None:
    with (
        pytest.raises(EnvironmentProblem, match="the variable in-put cannot come from a secret on this"),
        process_variables.carry_variables({"in-put": "x"}, ["true"], ["in-put"]),
    ):
        pass


def test_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="null byte"), process_variables.carry_variables({"A": "a\0b"}, ["true"]):
        pass
