from hypothesis import given, strategies as st

from localpachd.api.messages import pps_messages as messages
from localpachd.api.pps.logs_servicer import LogLines
from localpachd.pps.pps_entities import LogMessage, Pipeline

texts = st.text(st.characters(codec="utf-8"), max_size=300)
names = st.sampled_from(["", "a", "b"])
lines = st.builds(
    LogMessage,
    ts=st.integers(0, 2**62) | st.sampled_from([0, 1_000_000_000, 1_000_000_001, 2_000_000_000]),
    pipeline=st.none() | st.builds(Pipeline, names, names | texts),
    job=names,
    datum=names,
    worker=names,
    user=st.booleans(),
    master=st.booleans(),
    message=texts,
    data=st.lists(st.tuples(texts, st.binary(max_size=40)), max_size=3).map(tuple),
)


@given(st.lists(lines, max_size=6))
def test_lines_encoded_by_hand_equal_the_librarys(found: list[LogMessage]) -> None:
    encoder = LogLines()
    for line in found:
        assert encoder.encoded(line) == messages.log_message(line).SerializeToString()
