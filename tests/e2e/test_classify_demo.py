"""The demo of classifiers with the real backbone, as people run it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(600)

LOOKALIKE = (sys.executable, "-P", "-m", "pipelines.cli")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory whose server is stopped in the end."""
    yield tmp_path
    subprocess.run([*LOOKALIKE, "down"], cwd=tmp_path, env=environment(tmp_path), check=True, capture_output=True)


def environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PACHD_")}
    paths = {"PACH_CONFIG": home / "pachctl.json", "XDG_STATE_HOME": home / "kept", "XDG_CACHE_HOME": home / "cache"}
    return {
        **inherited,
        **{name: str(path) for name, path in paths.items()},
        "COLUMNS": "120",
        "LOOKALIKE_ROOT": "state",
    }


def test_it_trains_promotes_and_classifies(home: Path) -> None:
    done = subprocess.run(
        [*LOOKALIKE, "classify", "demo", "--port", "0"], cwd=home, env=environment(home), capture_output=True, text=True
    )
    said = done.stdout
    assert (done.returncode, done.stderr) == (0, ""), said + done.stderr
    assert re.search(r"^train +success +4 +0 +0 ", said, re.MULTILINE)
    for run in ("linear", "smoothed", "mlp", "dropout"):
        assert re.search(rf"^{run}@\w{{6}} ", said, re.MULTILINE), run
    assert re.search(r"^promoted \w+@\w{6} \(commit \w{12} of select\)$", said, re.MULTILINE)
    (right, of) = re.findall(r"^(\d+) of (\d+) sample queries right$", said, re.MULTILINE)[0]
    assert int(of) == 54 and int(right) >= 45
    report = home / "results" / "classify"
    assert {path.name for path in report.iterdir()} == {"index.html", "metrics.json", "model-card.md"}
    assert f"report: {report.relative_to(home)}/index.html\n" in said
