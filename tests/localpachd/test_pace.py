"""Delays, on a clock that the test moves."""

from hypothesis import given, strategies as st

from localpachd.pace import AT_ONCE, RandomDelays

SUBJECTS = st.lists(st.sets(st.integers(0, 5)), max_size=20)


def test_nothing_is_delayed_at_once() -> None:
    assert not AT_ONCE.late
    assert AT_ONCE.delays().over("abc") == (["a", "b", "c"], None)


@given(rounds=SUBJECTS, step=st.floats(0.01, 1))
def test_a_subject_is_delayed_once_and_within_the_limit(rounds: list[set[int]], step: float) -> None:
    now = 0.0
    delays = RandomDelays(1.0, lambda: now)
    since: dict[int, float] = {}
    seen_over: set[int] = set()
    for subjects in rounds:
        since = {each: since.get(each, now) for each in subjects}
        over, left = delays.over(sorted(subjects))
        assert over == sorted(over)
        assert {each for each in subjects if now - since[each] >= 1} <= set(over)
        assert seen_over & subjects <= set(over)
        assert (left is None) == (set(over) == subjects)
        assert left is None or 0 < left <= 1
        seen_over = set(over)
        now += step


def test_delays_differ_and_are_the_same_in_each_run() -> None:
    def order() -> list[list[int]]:
        now = 0.0
        delays = RandomDelays(1.0, lambda: now)
        found = []
        while now <= 1:
            found.append(delays.over(range(9))[0])
            now += 1 / 64
        return found

    assert order() == order()
    assert len({tuple(each) for each in order()}) > 5
