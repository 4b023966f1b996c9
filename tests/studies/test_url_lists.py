"""The study of lists of URLs, at a tiny size."""

from pathlib import Path

import pytest

from studies import url_lists

pytestmark = pytest.mark.soak


def test_each_url_ends_as_stored_or_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert url_lists.main(["faults", "--urls", "300"]) == 0
    assert "300 URLs: 284 stored, 16 listed with a reason, 0 wrong" in capsys.readouterr().out


def test_speed_and_memory_are_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert url_lists.main(["speed", "--urls", "50"]) == 0
    assert url_lists.main(["memory", "--urls", "2000"]) == 0
    said = capsys.readouterr().out
    assert said.count("pictures a second") == 4 and said.count("MB at most") == 4
