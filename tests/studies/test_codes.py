"""The benchmark of searches by codes: small, from end to end."""

import json
from pathlib import Path

import pytest

from studies import codes

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("algorithm", ["ivfflat", "ivfpq"])
def test_a_library_is_measured_in_both_ways(algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = tmp_path / "measured.json"
    assert codes.main(["--pictures", "80000", "--algorithm", algorithm, "--json", str(measured)]) == 0
    said = capsys.readouterr().out
    (found,) = (line for line in said.splitlines() if line.startswith("recall@10"))
    assert 0.5 < float(found.split()[4]) <= 1
    assert {row["name"] for row in json.loads(measured.read_text())["rows"]} == {"codes", "exact", "written"}
