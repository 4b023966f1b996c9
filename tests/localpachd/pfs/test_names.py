import pytest

from localpachd.errors import PachError
from localpachd.pfs import names


@pytest.mark.parametrize("name", ["a", "A-b_9", "-x", "_"])
def test_names_that_pachyderm_takes(name: str) -> None:
    names.check(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "a.b", "a\n"])
def test_names_that_pachyderm_refuses(name: str) -> None:
    with pytest.raises(PachError, match="only alphanumeric characters, underscores, and dashes are allowed"):
        names.check(name)


def test_a_branch_may_not_look_like_an_id() -> None:
    with pytest.raises(PachError):
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
        ("0123456789ab4cdef0123456789abcde~", ("0123456789ab4cdef0123456789abcde", 1)),
    ],
)
def test_ancestry_is_read_as_pachyderm_reads_it(expression: str, meaning: tuple[str, int]) -> None:
    assert names.parse_ancestry(expression) == meaning


def test_mixed_ancestry_marks_are_refused_with_the_original_text() -> None:
    with pytest.raises(PachError, match=r'invalid ancestry syntax "master\^~", cannot mix \^ and ~ characters'):
        names.parse_ancestry("master^~")
