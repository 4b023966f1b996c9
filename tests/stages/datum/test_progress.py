"""Lines of progress, as a stage prints them and as the command reads them."""

import pytest

from pipelines.client.jobs.workers import DatumProgress as Read, _progress
from stages.datum.progress import Progress


def test_every_line_is_read_as_it_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    known, unknown = Progress("pictures", 3, every=0.0), Progress("pictures", every=0.0)
    for _ in range(3):
        known.add()
    unknown.add(12000)
    lines = capsys.readouterr().out.splitlines()
    assert [_progress(line) for line in lines] == [
        Read(1, 3, "pictures"),
        Read(2, 3, "pictures"),
        Read(3, 3, "pictures"),
        Read(12000, 0, "pictures"),
    ]


def test_more_than_the_total_is_not_a_share_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    Progress("pictures", 3, every=0.0).add(4)
    assert capsys.readouterr().out == "  4 pictures so far\n"


def test_a_short_datum_has_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    Progress("pictures", 3).add(2)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("line", ["features: /a", "5 of 3 pictures", "12 of them are there", "3 of 4 are there"])
def test_other_lines_are_none(line: str) -> None:
    assert _progress(line) is None
