import tempfile
import time
from pathlib import Path

from hypothesis import given, settings, strategies as st

from localpachd.database import Database
from localpachd.pps import log_rows
from localpachd.pps.log_rows import forget
from localpachd.pps.pps_entities import LogMessage, Pipeline
from tests.example_counts import examples

HOUR = 3600 * 10**9
ages = st.lists(st.integers(0, 60), max_size=20).map(lambda days: sorted(days, reverse=True))


@settings(deadline=None, max_examples=examples(30))
@given(ages, st.integers(0, 61), st.integers(0, 21))
def test_lines_that_are_too_old_or_too_many_are_deleted(ages: list[int], days: int, most: int) -> None:
    # Half a day older than `ages`, so that no line is exactly on the limit.
    lines = [
        LogMessage(time.time_ns() - (24 * age + 12) * HOUR, Pipeline("default", "p"), "", "", "", True, False, str(age))
        for age in ages
    ]
    expected = [age for age in ages if not days or age < days]
    expected = expected[-most:] if most else expected
    with tempfile.TemporaryDirectory() as directory:
        db = Database(Path(directory) / "db.sqlite")
        db.write(lambda conn: log_rows.write(conn, lines))
        assert forget(db, days, most) == len(ages) - len(expected)
        with db.read() as conn:
            assert [int(row[0]) for row in conn.execute("SELECT message FROM logs ORDER BY seq")] == expected
        assert forget(db, days, most) == 0
        db.close()
