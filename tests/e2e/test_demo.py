"""The demos with the real backbone, as people run them: the first twice, then stopped, with the memory of every process
measured; and that of classifiers on the library of the first."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.library.datasets.samples import library_crops
from stages.backbone.photographs import open_photograph

pytestmark = pytest.mark.timeout(600)

LOOKALIKE = f"{sys.executable} -P -m pipelines.cli"

MOST_MEMORY = 1536 << 10
"""KiB."""

# Runs a shell command, and adopts orphans such as the server that this starts in the background: so it learns the peak
# memory of every process.
WATCHING = """
import ctypes, os, resource, subprocess, sys
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
status = subprocess.run(["sh", "-ec", sys.argv[1]]).returncode
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


@dataclass(frozen=True)
class Outcome:
    """The demo's directory and variables; its output of the first and the second run; the answers to a picture from the
    library; the peak memory in KiB."""

    home: Path
    environment: dict[str, str]
    first: str
    second: str
    answers: list[dict[str, Any]]
    peak: int


def table(said: str) -> dict[str, tuple[str, int, int, int]]:
    """The table of jobs by pipeline: state, processed, skipped, failed."""
    rows = re.findall(r"^([\w-]+) +(\w+) +(\d+) +(\d+) +(\d+) +[\d.]+(?: +\d+)? *$", said, flags=re.MULTILINE)
    return {name: (state, *map(int, counts)) for name, state, *counts in rows}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Runs the demo unchanged, with its server's state in a new directory, and searches for one of its pictures."""
    home = tmp_path_factory.mktemp("demo")
    _, second_crop, *_ = library_crops(open_photograph("cat"), "cat", 0)
    second_crop.save(home / "known.png")
    demo = f"{LOOKALIKE} demo --port 0"
    script = f"{demo} > first; {demo} > second; {LOOKALIKE} query known.png > third; {LOOKALIKE} down"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PACHD_")}
    environment |= {"PACH_CONFIG": str(home / "pachctl.json"), "COLUMNS": "120", "LOOKALIKE_ROOT": "state"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHING, script], cwd=home, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (home / "first").read_text() + done.stdout + done.stderr
    peak = int(re.findall(r"^peak (\d+)$", done.stdout, flags=re.MULTILINE)[0])
    first, second = (home / "first").read_text(), (home / "second").read_text()
    answers = (home / "results" / "known.png" / "neighbors.jsonl").read_text().splitlines()
    return Outcome(home, environment, first, second, list(map(json.loads, answers)), peak)


def test_the_first_run_computes_everything(outcome: Outcome) -> None:
    jobs = table(outcome.first)
    assert {state for state, *_ in jobs.values()} == {"success"}
    assert jobs["preprocess"][1:] == (2, 0, 0)
    assert jobs["features-queries"][1:] == (1, 0, 0)
    assert all(processed > 0 and failed == 0 for _, processed, _, failed in jobs.values())
    assert "results/sample-queries/index.html" in outcome.first


def test_the_answers_are_as_good_as_promised(outcome: Outcome) -> None:
    shares = dict(re.findall(r"^(lookalike|colour histogram) +([\d.]+) +[\d.]+ *$", outcome.first, flags=re.MULTILINE))
    ours, histogram = float(shares["lookalike"]), float(shares["colour histogram"])
    assert ours >= 0.80
    assert ours - histogram >= 0.30


def test_the_second_run_finds_everything_in_place(outcome: Outcome) -> None:
    jobs = table(outcome.second)
    assert {(state, processed, failed) for state, processed, _, failed in jobs.values()} == {("success", 0, 0)}
    assert "created" not in outcome.second
    assert "pushed" not in outcome.second


def test_a_picture_of_the_library_finds_itself_first(outcome: Outcome) -> None:
    (answer,) = outcome.answers
    first, *others = answer["neighbors"]
    assert [source.rpartition("/")[2] for source in first["sources"]] == ["cat-02.png"]
    assert (first["id"], first["distance"]) == (answer["query"], 0)
    # Vectors of length 1, as the backbone gives them, are at most 2 apart.
    assert [0 < each["distance"] <= 2 for each in others] == [True, True]


def test_no_process_exceeds_the_memory_limit(outcome: Outcome) -> None:
    assert (
        300 << 10 < outcome.peak < MOST_MEMORY
    )  # more than any process without TensorFlow holds, so those were measured


def test_classifiers_are_trained_promoted_and_used(outcome: Outcome) -> None:
    script = f"{LOOKALIKE} classify demo --port 0; {LOOKALIKE} down > down"
    done = subprocess.run(
        ["sh", "-ec", script], cwd=outcome.home, env=outcome.environment, capture_output=True, text=True
    )
    said = done.stdout
    assert (done.returncode, done.stderr) == (0, ""), said + done.stderr
    assert re.search(r"^train +success +4 +0 +0 ", said, re.MULTILINE)
    for run in ("linear", "smoothed", "mlp", "dropout"):
        assert re.search(rf"^{run}@\w{{6}} ", said, re.MULTILINE), run
    assert re.search(r"^promoted \w+@\w{6} \(commit \w{12} of select\)$", said, re.MULTILINE)
    (right, of) = re.findall(r"^(\d+) of (\d+) sample queries right$", said, re.MULTILINE)[0]
    assert int(of) == 54 and int(right) >= 45
    report = outcome.home / "results" / "classify"
    assert {path.name for path in report.iterdir()} == {"index.html", "metrics.json", "model-card.md"}
    assert f"report: {report.relative_to(outcome.home)}/index.html\n" in said
