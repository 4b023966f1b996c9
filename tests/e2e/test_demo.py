"""The demo with the real backbone, as people run it: twice, then stopped, with an eye on every process's memory."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.world import Paint

MOST_MEMORY = 1536 << 10
"""KiB."""

# Runs a shell command, and adopts orphans such as the server that this starts in the background: so it hears how much
# memory any process has held.
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
    """What the first and the second run said, and one on the sample pictures; the first's result sheet's directory, and
    the peak of memory in KiB."""

    first: str
    second: str
    samples: str
    sheet: Path
    peak: int


def table(said: str) -> dict[str, tuple[str, int, int, int]]:
    """The table of jobs: state, processed, skipped, failed by pipeline."""
    rows = re.findall(r"^([\w-]+) +(\w+) +(\d+) +(\d+) +(\d+) +[\d.]+(?: +\d+)? *$", said, flags=re.MULTILINE)
    return {name: (state, *map(int, counts)) for name, state, *counts in rows}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, paint: Paint) -> Outcome:
    """Runs the demo on a few pictures, with its server's state in a new directory."""
    home = tmp_path_factory.mktemp("demo")
    for number in range(1, 7):
        for directory in ("library", "queries")[: 2 if number < 3 else 1]:
            path = home / directory / f"{number}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(paint(number))
    lookalike = f"{sys.executable} -P -m pipelines.cli"
    demo = f"{lookalike} demo --images library --queries queries --root state --port 0"
    samples = f"{lookalike} demo --root sampled --output sheets --port 0"
    script = (
        f"{demo} > first; {demo} > second; {lookalike} down --root state; "
        f"{samples} > samples; {lookalike} down --root sampled"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PACHD_")}
    environment |= {"PACH_CONFIG": str(home / "pachctl.json"), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHING, script], cwd=home, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (home / "first").read_text() + done.stdout + done.stderr
    peak = int(re.findall(r"^peak (\d+)$", done.stdout, flags=re.MULTILINE)[0])
    said = [(home / name).read_text() for name in ("first", "second", "samples")]
    return Outcome(*said, home / "results" / "queries", peak)


def test_the_first_run_computes_everything(outcome: Outcome) -> None:
    jobs = table(outcome.first)
    assert {state for state, *_ in jobs.values()} == {"success"}
    assert jobs["preprocess"][1:] == (6, 0, 0)
    assert jobs["features-queries"][1:] == (1, 0, 0)
    assert all(processed > 0 and failed == 0 for _, processed, _, failed in jobs.values())
    assert "results/queries/index.html" in outcome.first


def test_the_second_run_finds_everything_in_place(outcome: Outcome) -> None:
    jobs = table(outcome.second)
    assert {(state, processed, failed) for state, processed, _, failed in jobs.values()} == {("success", 0, 0)}
    assert "created" not in outcome.second
    assert "pushed" not in outcome.second


def test_the_answers_are_the_backbones(outcome: Outcome) -> None:
    answers = [json.loads(line) for line in (outcome.sheet / "neighbors.jsonl").read_text().splitlines()]
    assert len(answers) == 2
    for answer in answers:
        first, *others = answer["neighbors"]
        assert first["sources"] == [answer["sources"][0].replace("queries/", "library/")]
        assert (first["id"], first["distance"]) == (answer["query"], 0)
        # Vectors of length 1, as the backbone gives them, are at most 2 apart.
        assert [0 < each["distance"] <= 2 for each in others] == [True, True]


def test_no_process_takes_more_than_its_share_of_memory(outcome: Outcome) -> None:
    assert 300 << 10 < outcome.peak < MOST_MEMORY  # more than any process without TensorFlow, so they are all seen


def test_the_samples_are_answered_as_well_as_promised(outcome: Outcome) -> None:
    jobs = table(outcome.samples)
    assert {state for state, *_ in jobs.values()} == {"success"}
    assert jobs["preprocess"][1] > 500
    shares = dict(
        re.findall(r"^(lookalike|colour histogram) +([\d.]+) +[\d.]+ *$", outcome.samples, flags=re.MULTILINE)
    )
    ours, histogram = float(shares["lookalike"]), float(shares["colour histogram"])
    assert ours >= 0.80
    assert ours - histogram >= 0.30
