"""The scheduling of tests on several processes: their number, and a file at a time for each, the longest first.

TensorFlow's files are one group: two at once would be slower than one after the other, as each pass uses all cores. So
are those of the service, which share a browser.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

GROUPS = {
    "TensorFlow": (
        "tests/stages/backbone",
        "tests/stages/classify",
        "tests/stages/test_features.py",
        "tests/stages/test_label_vectors.py",
        "tests/stages/test_promotion.py",
        "tests/stages/test_train.py",
        "tests/stages/test_zoo.py",
        "tests/pipelines/library/test_backbone_push.py",
        "tests/pipelines/analysis/test_stage_runs.py",
        "tests/studies/test_classify.py",
        "tests/benchmarks/test_stages.py",
    ),
    "service": ("tests/stages/serving",),
}
"""The files, and directories of them, that one process runs, by the name of the group."""

FIRST = (
    "tests/e2e",
    "tests/benchmarks",
    "tests/setup",
    "tests/docker",
    "tests/studies",
    "tests/examples",
    "tests/pipelines/library",
    "tests/pipelines/commands",
    "tests/pipelines",
    "tests/stages",
)
"""The directories whose files take the longest, ten seconds and more, in the order in which they begin. The groups
begin before them, and all other files, which take a few seconds at most, after them."""

ONLY_IN_ALL = (
    "tests/benchmarks",
    "tests/e2e/test_crashes.py",
    "tests/e2e/test_demo.py",
    "tests/e2e/test_images.py",
    "tests/e2e/test_overlay_large.py",
    "tests/e2e/test_sequences.py",
    "tests/e2e/test_warm.py",
    "tests/e2e/test_workers.py",
    "tests/endurance",
    "tests/examples",
    "tests/setup/test_environment.py",
    "tests/stages/classify/test_killed.py",
    "tests/stages/classify/test_mirrored.py",
    "tests/stages/serving/page/test_access.py",
    "tests/stages/serving/page/test_answers.py",
    "tests/stages/serving/page/test_classify.py",
    "tests/stages/serving/page/test_library.py",
    "tests/stages/serving/page/test_standing.py",
    "tests/studies/test_gpu.py",
    "tests/test_readme.py",
    "tests/test_tutorial.py",
    "tests/towers",
    "tests/wheel",
)
"""What `make test` leaves to `make test-all`: servers killed at random, the set-up, the wheel, the demos and examples,
the depth of the page, and the benchmarks."""

PER_CORE = 2
"""Test processes for each core: while one waits for a server that is late, or for a disk, another goes on."""
MEMORY = 2 << 30
"""Bytes for a test process, its servers and their workers, two of which may hold TensorFlow."""


def processes(cores: int, memory: int) -> int:
    """The number of test processes on a machine with so many cores and bytes of memory: one for each core, and more as
    far as the memory allows."""
    return max(cores, min(PER_CORE * cores, memory // MEMORY))


def processes_here() -> int:
    """The same on this machine."""
    return processes(len(os.sched_getaffinity(0)), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


_ROOT = Path(__file__).parent.parent


def everything(config: pytest.Config) -> bool:
    """Whether all tests run, as in `make test-all` and `make soak`."""
    return bool(config.getoption("--all") or config.getoption("--soak"))


def only_in_all(path: Path) -> bool:
    """Whether a file or directory is run by `make test-all` only."""
    return path.is_relative_to(_ROOT) and path.relative_to(_ROOT).as_posix() in ONLY_IN_ALL


def scope(nodeid: str) -> str:
    """The name of the file or group that a test is run with."""
    file = Path(nodeid.partition("::")[0])
    for name, places in GROUPS.items():
        if any(file.is_relative_to(each) for each in places):
            return name
    return file.as_posix()


def _place(scope: str) -> int:
    """The place of a file or group in the order in which processes should take them."""
    if scope in GROUPS:
        return -1
    return next((place for place, each in enumerate(FIRST) if Path(scope).is_relative_to(each)), len(FIRST))


def grouped(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests of each file or group, in the order in which processes should take these."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(scope(item.nodeid), []).append(item)
    return [found[each] for each in sorted(found, key=_place)]
