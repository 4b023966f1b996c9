"""Runs of the fuzzer: the figures in its log, and one input again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.mutations import mutations
from tests.fuzz.runs import outcome

_LOG = """INFO: Instrumenting stages.record.pfs_names
#0\tREAD units: 8
#9\tINITED cov: 20 ft: 33 corp: 8/1079b exec/s: 0 rss: 47Mb
#800\tNEW    cov: 26 ft: 45 corp: 9/1100b lim: 260 exec/s: 6000 rss: 47Mb L: 9/260 MS: 1 CMP-
"""
_END = """#20000\tDONE   cov: 27 ft: 48 corp: 19/3035b lim: 453 exec/s: 6666 rss: 48Mb
Done 20000 runs in 3 second(s)
stat::number_of_executed_units: 20000
stat::average_exec_per_sec:     6666
stat::peak_rss_mb:              187
stat::memory_mb: 48
"""


def test_the_figures_are_those_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(_LOG + _END)
    found = outcome("names", log, [], ended_well=True)
    assert (found.executions, found.rate, found.coverage, found.memory, found.faults) == (20_000, 6666, 27, 48, [])


def test_a_run_that_was_cut_short_has_the_last_figures(tmp_path: Path) -> None:
    log, fault = tmp_path / "log", tmp_path / "crash-0123"
    log.write_text(_LOG)
    found = outcome("names", log, [fault], ended_well=False)
    assert (found.executions, found.coverage, found.faults, found.ended_well) == (800, 26, [fault], False)
    log.write_text("ModuleNotFoundError: No module named 'atheris'")
    assert outcome("names", log, [], ended_well=False).executions == 0


@pytest.mark.parametrize(("target", "code"), [("names", 0), ("nothing", 2)])
def test_one_input_can_be_run_again(tmp_path: Path, target: str, code: int) -> None:
    (tmp_path / "input").write_bytes(b"a/b.jpg")
    command = [sys.executable, "-m", "tests.fuzz", target, "--input", str(tmp_path / "input")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == code


def test_the_same_seed_makes_the_same_changes() -> None:
    seeds, words = [b"abcdef", b""], [b"word"]
    made = list(mutations(seeds, words, 200, seed=3))
    assert made == list(mutations(seeds, words, 200, seed=3)) != list(mutations(seeds, words, 200, seed=4))
    assert len(set(made)) > 100
