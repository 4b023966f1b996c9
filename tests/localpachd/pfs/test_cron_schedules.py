"""Cron expressions: when they are due, those refused, and properties of all of them."""

from datetime import datetime

import pytest
from hypothesis import given, strategies as st

from localpachd.errors import PachError
from localpachd.pfs import cron_schedules

SECOND = 1_000_000_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("*/5 * * * *", "2024-02-28T10:20:00Z"),
        ("0 0 1 * ?", "2024-03-01T00:00:00Z"),
        ("0 12 29 2 *", "2024-02-29T12:00:00Z"),
        ("30 6 * jan MON-fri", "2025-01-01T06:30:00Z"),
        ("0 0 13 * 5", "2024-03-01T00:00:00Z"),  # the 13th or a Friday, whichever comes first
        ("0 0 * * 5/1", "2024-03-01T00:00:00Z"),
        ("@yearly", "2025-01-01T00:00:00Z"),
        ("@monthly", "2024-03-01T00:00:00Z"),
        ("@weekly", "2024-03-03T00:00:00Z"),
        ("@daily", "2024-02-29T00:00:00Z"),
        ("@hourly", "2024-02-28T11:00:00Z"),
        ("@every 90s", "2024-02-28T10:18:37Z"),
        ("@every 1h1m1.9s", "2024-02-28T11:18:08Z"),
        ("@every 1ms", "2024-02-28T10:17:08Z"),
    ],
)
def test_the_next_point(expression: str, due: str) -> None:
    now = at("2024-02-28T10:17:07Z") + SECOND // 2
    assert cron_schedules.parse(expression).next(now) == at(due)


def test_never_never_comes() -> None:
    assert cron_schedules.parse(" @never ").next(0) is None


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* * * * 7", "* * L * *", "* * * * 1#2", "@often", "@every soon",
     "@every", "*/0 * * * *", "5-2 * * * *", "a * * * *", f"@every {400 * '9'}s", "@every 9999999999h",
     f"0-{5000 * '9'} * * * *"],
)  # fmt: skip
def test_invalid_expressions_are_refused(expression: str) -> None:
    with pytest.raises(PachError):
        cron_schedules.parse(expression)


fields = st.tuples(*(st.one_of(st.just("*"), st.integers(low, high).map(str)) for low, high in
                     ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6)))).map(" ".join)  # fmt: skip


@given(fields | st.integers(1, 10**6).map("@every {}s".format), st.integers(0, 4 * 10**18))
def test_points_lie_ahead_and_are_whole_seconds(expression: str, now: int) -> None:
    due = cron_schedules.parse(expression).next(now)
    assert due is not None and due > now - SECOND
    assert due % SECOND == 0
    after = cron_schedules.parse(expression).next(due)
    assert after is not None and after > due
