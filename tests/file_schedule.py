"""The scheduling of tests on several processes: their number, and a file at a time for each, the longest first.

TensorFlow's files are one group: two at once would be slower than one after the other, as each pass uses all cores. So
are those of the service, which share a browser.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

TENSORFLOW = (
    "tests/stages/backbone/test_keras_applications.py",
    "tests/stages/backbone/test_backbones.py",
    "tests/stages/backbone/test_devices.py",
    "tests/stages/backbone/test_efficientnet.py",
    "tests/stages/backbone/test_embedder.py",
    "tests/stages/test_features.py",
    "tests/stages/backbone/test_graphs.py",
    "tests/stages/test_label_vectors.py",
    "tests/stages/backbone/test_precision.py",
    "tests/stages/test_promotion.py",
    "tests/stages/test_zoo.py",
    "tests/stages/classify/test_network_file.py",
    "tests/stages/classify/test_classifier.py",
    "tests/stages/classify/training/test_heads.py",
    "tests/stages/classify/training/test_validation.py",
    "tests/stages/test_train.py",
    "tests/pipelines/library/test_backbone_push.py",
    "tests/pipelines/analysis/test_stage_runs.py",
    "tests/studies/test_classify.py",
    "tests/benchmarks/test_stages.py",
)
SERVICE = (
    "tests/stages/serving/page/test_access.py",
    "tests/stages/serving/page/test_answers.py",
    "tests/stages/serving/page/test_asking.py",
    "tests/stages/serving/page/test_library.py",
    "tests/stages/serving/page/test_standing.py",
    "tests/stages/serving/http/test_app.py",
    "tests/stages/serving/http/test_library_routes.py",
    "tests/stages/serving/test_bad_input.py",
    "tests/stages/serving/test_concurrency.py",
    "tests/stages/serving/follow/test_commit_follower.py",
    "tests/stages/serving/test_equality.py",
    "tests/stages/serving/test_mutations.py",
    "tests/stages/serving/test_urls.py",
)
LONGEST = (
    TENSORFLOW[1],
    SERVICE[0],
    "tests/e2e/test_sequences.py",
    "tests/e2e/test_classify.py",
    "tests/e2e/test_asking.py",
    "tests/e2e/test_duplicates.py",
    "tests/e2e/test_neighbours.py",
    "tests/e2e/test_bad_input.py",
    "tests/e2e/test_increments.py",
    "tests/e2e/test_traces.py",
    "tests/e2e/test_framing.py",
    "tests/e2e/test_side_by_side.py",
    "tests/e2e/test_demo.py",
    "tests/e2e/test_classify_demo.py",
    "tests/e2e/test_evaluation.py",
    "tests/e2e/test_serving.py",
    "tests/e2e/test_warm.py",
    "tests/e2e/test_history.py",
    "tests/benchmarks/test_pipeline.py",
    "tests/pipelines/library/test_ingest.py",
    "tests/pipelines/commands/test_outages.py",
    "tests/pipelines/commands/kit/test_interrupts.py",
    "tests/pipelines/commands/classify/test_classify.py",
    "tests/pipelines/commands/test_resizing.py",
    "tests/pipelines/transfer/test_moving.py",
    "tests/pipelines/cluster/test_gpu_holders.py",
    "tests/pipelines/commands/library/test_add_query.py",
    "tests/pipelines/commands/library/test_sync.py",
    "tests/pipelines/commands/service/test_serve.py",
    "tests/pipelines/commands/test_waits.py",
    "tests/pipelines/commands/explain/test_evaluate.py",
    "tests/pipelines/commands/library/test_duplicates.py",
    "tests/pipelines/commands/explain/test_history.py",
    "tests/docker/test_images.py",
    "tests/e2e/test_faults.py",
    "tests/e2e/test_crashes.py",
    "tests/studies/test_gpu.py",
    "tests/pipelines/commands/test_cli.py",
    "tests/localpachd/test_server.py",
    "tests/localpachd/test_recovery.py",
    "tests/localpachd/worker/test_warm_workers.py",
    "tests/localpachd/worker/test_batch_channel.py",
    "tests/localpachd/pps/test_warm.py",
    "tests/localpachd/pps/test_histories.py",
    "tests/pipelines/client/server/test_local_server.py",
    "tests/pipelines/cluster/test_preflight.py",
    "tests/stages/datum/test_contract.py",
    "tests/stages/test_preprocess.py",
    "tests/setup/test_environment.py",
    "tests/examples/test_cron.py",
)
"""Files that take ten seconds or more; the others take a few at most."""

ONLY_IN_ALL = (
    "tests/benchmarks",
    "tests/e2e/test_classify_demo.py",
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


GROUPS = dict.fromkeys(TENSORFLOW, "TensorFlow") | dict.fromkeys(SERVICE, "service")


def scope(nodeid: str) -> str:
    """The name of the file or group that a test is run with."""
    file = nodeid.partition("::")[0]
    return GROUPS.get(file, file)


def grouped(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests of each file or group, in the order in which processes should take these."""
    places = {scope(file): place for place, file in enumerate(LONGEST)}
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(scope(item.nodeid), []).append(item)
    return [found[each] for each in sorted(found, key=lambda each: places.get(each, len(places)))]
