"""The benchmark of many entries in many segments: small, from end to end."""

import json
from pathlib import Path

import pytest

from stages.record import entry_paths
from studies import entries

pytestmark = pytest.mark.soak


@pytest.mark.timeout(600)
@pytest.mark.parametrize("buckets", [0, entry_paths.BUCKETS])
def test_entries_are_searched_by_bucket_or_alone(
    buckets: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = tmp_path / "measured.json"
    arguments = ["search", "--entries", "9", "--pictures", "100", "--json", str(measured), "--buckets", str(buckets)]
    assert entries.main(arguments) == 0
    names = [f"entry-{number:05d}.jpg" for number in range(10)]
    before, after = (len(set(map(entry_paths.bucket, some) if buckets else some)) for some in (names[:9], names))
    said = capsys.readouterr().out
    assert f"{16 * before} datums, 0 skipped" in said
    assert f"{after} datums, {15 * after} skipped" in said
    assert {row["name"] for row in json.loads(measured.read_text())["rows"]} == {
        "all",
        "one entry more",
        "one picture more",
    }


def test_datums_are_listed_without_a_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert entries.main(["expand", "--digits", "1", "--entries", "20", "--buckets", "0", "2"]) == 0
    said = capsys.readouterr().out
    assert "16 segments × 20 entries: 320 datums listed" in said
    assert "16 segments × 20 entries in 2 buckets: 32 datums listed" in said
