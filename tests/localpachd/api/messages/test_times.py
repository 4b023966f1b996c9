"""Times as messages."""

from hypothesis import given, strategies as st

from localpachd.api.messages.times import duration, nanoseconds, seconds, timestamp


@given(st.integers(0, 4 * 10**18))
def test_times_survive_encoding(moment: int) -> None:
    message = timestamp(moment)
    assert 0 <= message.nanos < 10**9
    assert nanoseconds(message) == moment


@given(st.integers(-(10**15), 10**15))
def test_durations_survive_encoding(microseconds: int) -> None:
    message = duration(microseconds / 10**6)
    assert message is not None
    assert message.seconds * message.nanos >= 0
    assert round(seconds(message) * 10**6) == microseconds


def test_none_stays_unset() -> None:
    assert timestamp(None) is None
    assert duration(None) is None
