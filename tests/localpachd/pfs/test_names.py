import re

import pytest

from localpachd.errors import PachError
from localpachd.pfs import names


@pytest.mark.parametrize("name", ["a", "A-b_9", "-x", "_"])
def test_valid_names(name: str) -> None:
    names.check(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "a.b", "a\n"])
def test_invalid_names(name: str) -> None:
    with pytest.raises(PachError, match="only alphanumeric characters, underscores, and dashes are allowed"):
        names.check(name)


def test_a_branch_may_not_look_like_an_id() -> None:
    with pytest.raises(PachError, match="^bad key: branch name cannot be a UUID V4$"):
        names.check_branch("0123456789ab4cdef0123456789abcde")


@pytest.mark.parametrize(
    ("expression", "meaning"),
    [
        ("master", ("master", 0)),
        ("master^", ("master", 1)),
        ("master^^", ("master", 2)),
        ("master~3", ("master", 3)),
        ("master^3", ("master", 3)),
        ("master.1", ("master", -1)),
        ("master.12", ("master", -12)),
        ("master.0", ("master", 0)),
        ("master~~~", ("master", 3)),
        ("0123456789ab4cdef0123456789abcde~", ("0123456789ab4cdef0123456789abcde", 1)),
    ],
)
def test_ancestry_is_read_as_pachyderm_reads_it(expression: str, meaning: tuple[str, int]) -> None:
    assert names.parse_ancestry(expression) == meaning


@pytest.mark.parametrize(
    ("expression", "marks"), [("master^~", "^ and ~"), ("master~x", "~ and x"), ("m.1.2", ". and 1")]
)
def test_mixed_ancestry_marks_are_refused_with_the_original_text(expression: str, marks: str) -> None:
    text = re.escape(f'invalid ancestry syntax "{expression}", cannot mix {marks} characters')
    with pytest.raises(PachError, match=f"^{text}$"):
        names.parse_ancestry(expression)


@pytest.mark.parametrize("name", ["default", "a", "9-b_c", "a" * 51])
def test_valid_names_of_projects(name: str) -> None:
    names.check_project(name)


@pytest.mark.parametrize("name", ["", "-a", "_a", "a b", "a" * 52])
def test_invalid_names_of_projects(name: str) -> None:
    with pytest.raises(PachError, match="^invalid project name: "):
        names.check_project(name)
