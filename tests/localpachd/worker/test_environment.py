"""The variables of a process, in its environment and in `/pfs/.env`."""

from __future__ import annotations

import pytest

from localpachd.worker.tasks import Task, WorkerPod
from tests.localpachd.worker.bench import Bench


def test_the_file_has_the_pipelines_variables_and_the_datums_and_can_be_read_by_shells(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MACHINES_OWN", "(what shells; stumble over")
    task = bench.sh(
        'cut -d = -f 1 "$PFS/.env" | LC_ALL=C sort | paste -s -d " "; set -a; . "$PFS/.env";'
        ' sh -c "echo $SET $in_COMMIT $in"',
        env={"SET": "1"},
    )
    assert bench.one(task, bench.input("in", "/f", {"/f": b""})).state == "PROCESSED"
    names, said = bench.said()
    assert names == "PPS_WORKER_GRPC_PORT SET in in_COMMIT"
    assert said.startswith("1 " + 32 * "0") and said.endswith("/in/f")


def test_a_transforms_variables_win_over_the_machines(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "machine")
    bench.one(Task(("sh", "-c", 'echo "$LANG"'), env={"LANG": "pipeline"}, tries=1))
    assert bench.said() == ["pipeline"]


def test_a_datums_variables_win_over_the_transforms(bench: Bench) -> None:
    task = Task(("sh", "-c", 'echo "${in##*/}"'), env={"in": "pipeline"}, tries=1)
    bench.one(task, bench.input("in", "/f", {"/f": b""}))
    assert bench.said() == ["f"]


def test_a_transforms_variables_win_over_the_pods(bench: Bench) -> None:
    pod = WorkerPod("project", "pipeline", "commit", "worker", 650)
    names = "PPS_PIPELINE_NAME PPS_POD_NAME PEER_PORT"
    bench.one(Task(("sh", "-c", f"echo ${' $'.join(names.split())}"), env={"PEER_PORT": "mine"}, pod=pod, tries=1))
    assert bench.said() == ["pipeline worker mine"]
