"""Runs of atheris: one target in a process of its own, with its corpus, and what libFuzzer says of it in the end."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path

from tests.fuzz.target import Target

_SECONDS_FOR_ONE = 20
"""An input that takes longer is a hang; libFuzzer keeps those that take more than ten. The machine may be busy."""
_MEMORY = 2048
"""MiB, of the whole process: beyond, the input that took them is a fault."""
_SEEN = re.compile(r"^#(\d+)\s.*?cov: (\d+)", re.MULTILINE)
_STATISTIC = re.compile(r"^stat::(\w+):\s+(\d+)", re.MULTILINE)
_LONGEST_WORD = 64
"""Bytes of a word of libFuzzer's dictionaries; longer ones are parts that it may copy from the corpus."""
_IN_MEMORY = Path("/dev/shm")
_FAULTS = ("crash-*", "timeout-*", "oom-*", "slow-unit-*")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run. coverage: branches and their counts, as libFuzzer numbers them. memory: MiB at most.
    faults: the inputs that failed."""

    name: str
    executions: int
    rate: int
    coverage: int
    memory: int
    faults: Sequence[Path]
    log: Path
    ended_well: bool


def run(module: str, target: Target, into: Path, runs: int, seconds: int) -> Outcome:
    """Fuzzes a target until it has had so many executions or so many seconds (0: no limit), or fails. into: the
    directory of its corpus, which is kept. Inputs that failed in earlier runs are tried again."""
    begun = time.time()
    own = into / target.name
    corpus, faults, log = own / "corpus", own / "faults", own / "log"
    for each in (corpus, faults):
        each.mkdir(parents=True, exist_ok=True)
    long = [word for word in target.words if len(word) > _LONGEST_WORD]
    for seed in (*target.seeds(), *long):
        (corpus / f"seed-{sha1(seed, usedforsecurity=False).hexdigest()}").write_bytes(seed[: target.longest])
    limits = [f"-runs={runs}"] if runs else []
    limits += [f"-max_total_time={seconds}"] if seconds else []
    if target.words:  # libFuzzer refuses an empty dictionary
        words = own / "words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words if word not in long))
        limits.append(f"-dict={words}")
    options = [
        *limits,
        f"-max_len={target.longest}",
        f"-timeout={_SECONDS_FOR_ONE}",
        f"-rss_limit_mb={_MEMORY}",
        f"-artifact_prefix={faults}/",
        "-print_final_stats=1",
        str(corpus),
        str(faults),
    ]
    # Targets write a file for each execution, and libFuzzer ends the process before Python could tidy up.
    place = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    with log.open("wb") as file, tempfile.TemporaryDirectory(prefix="lookalike-fuzz-", dir=place) as scratch:
        ended = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.atheris_target", module, target.name, *options],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": scratch},
            check=False,
        )
    failed = [each for pattern in _FAULTS for each in faults.glob(pattern) if each.stat().st_mtime >= begun]
    return outcome(target.name, log, sorted(failed), ended.returncode == 0)


def outcome(name: str, log: Path, faults: Sequence[Path], ended_well: bool) -> Outcome:
    """The figures in the log of a run, also of one that was cut short."""
    text = log.read_text(errors="replace")
    seen = _SEEN.findall(text) or [("0", "0")]
    said = {key: int(value) for key, value in _STATISTIC.findall(text)}
    return Outcome(
        name,
        said.get("number_of_executed_units", int(seen[-1][0])),
        said.get("average_exec_per_sec", 0),
        int(seen[-1][1]),
        said.get("memory_mb", 0),
        faults,
        log,
        ended_well,
    )


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{each:02x}" for each in word)
