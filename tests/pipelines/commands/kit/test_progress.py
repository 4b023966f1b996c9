"""The lines and bars of jobs that wait, run and end."""

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2
from rich.console import Console

from pipelines.client.jobs.jobs import Job
from pipelines.client.jobs.workers import BusyWorker
from pipelines.client.server.connection import Connection
from pipelines.cluster.job_waits import JobWaits
from pipelines.commands.kit import progress, terminal

pytestmark = pytest.mark.late_alone

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")

SHORT = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def job(pipeline: str, state: str, *busy: BusyWorker, processed: int = 0, id_: str = "0" * 32) -> Job:
    return Job(pipeline, id_, state, processed, 0, 0, 2, None, "", busy)


def info(name: str, state: str, reason: str = "", gpus: int = 1) -> Any:
    found = pps_pb2.PipelineInfo(state=pps_pb2.PipelineState.Value(f"PIPELINE_{state}"), reason=reason)
    found.pipeline.name = name
    found.details.autoscaling = True
    if gpus:
        found.details.resource_limits.gpu.number = gpus
        found.details.resource_limits.gpu.type = "nvidia.com/gpu"
    return found


def infos(*found: Any) -> Mapping[str, Any]:
    return {each.pipeline.name: each for each in found}


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, kubeconfig: Callable[[str, str], None]) -> io.StringIO:
    """The output on a terminal of 100 columns, where kubectl does not work."""
    kubeconfig("http://127.0.0.1:9", "pach")
    written = io.StringIO()
    console = Console(file=written, width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "console", console)
    monkeypatch.setattr(progress, "console", console)
    return written


def lines(screen: io.StringIO) -> list[str]:
    return [line.rstrip() for line in _ESCAPE.sub("", screen.getvalue()).splitlines()]


def test_pipelines_that_take_turns_are_reported_once(like_a_cluster: Connection, screen: io.StringIO) -> None:
    with progress._bars() as bars:
        told = progress._JobLines(bars, JobWaits(like_a_cluster))
        for holder in ("features", "features", "index"):
            running = job(holder, "running")
            rest = [job(name, "created") for name in ("index", "search") if name != holder]
            crashing = [info(each.pipeline, "CRASHING", SHORT) for each in rest]
            later = job("search", "created", id_="1" * 32)
            told.tell([running, *rest, later], infos(info(holder, "RUNNING"), *crashing))
        told.tell([job("index", "success", processed=2)], {})
    said = [line for line in lines(screen) if "index" in line or "search" in line]
    assert said == ["index, search: waiting for a GPU, held by features", "index: success, 2 of 2 datums"]


def test_other_reasons_are_kubernetes_own(like_a_cluster: Connection, screen: io.StringIO) -> None:
    with progress._bars() as bars:
        told = progress._JobLines(bars, JobWaits(like_a_cluster))
        for why in ("Back-off pulling image", "Back-off pulling image", "manifest unknown"):
            told.tell([job("render", "created")], infos(info("render", "CRASHING", why, gpus=0)))
    said = [line for line in lines(screen) if "render" in line]
    assert said == ["render: Back-off pulling image", "render: manifest unknown"]


def test_jobs_without_datums_count_only_if_their_pipeline_has_no_others(
    like_a_cluster: Connection, screen: io.StringIO
) -> None:
    def ended(pipeline: str, set_: str, total: int) -> Job:
        return Job(pipeline, set_ * 32, "success", total, 0, 0, total, None, "")

    first, second = [ended("index", "0", 0), ended("search", "0", 0)], [ended("index", "1", 2), ended("search", "1", 0)]
    with progress._bars() as bars:
        told = progress._JobLines(bars, JobWaits(like_a_cluster))
        told.tell([*first, job("index", "created", id_="1" * 32), job("search", "created", id_="1" * 32)], {})
        assert lines(screen) == []
        told.tell([*first, *second], {})
        told.tell([*first, *second], {})
    assert [line for line in lines(screen) if line] == ["search: nothing to do", "index: success, 2 of 2 datums"]


def test_bars_show_the_datum_at_work(like_a_cluster: Connection, screen: io.StringIO) -> None:
    with progress._bars() as bars:
        bar = progress._JobLines(bars, JobWaits(like_a_cluster))
        workers = BusyWorker(("/[b].tar",), 12.2), BusyWorker((), 0.0)
        jobs = [job("features", "running", *workers), job("index", "created")]
        for _ in range(2):
            bar.look(jobs, infos(info("features", "RUNNING"), info("index", "CRASHING", SHORT)))
        bars.refresh()
        shown = lines(screen)
    assert any(line.startswith("features") and line.endswith(" /[b].tar for 12 s (+1)") for line in shown)
    assert any(line.startswith("index ") and line.endswith("waiting") for line in shown)
    assert "index: waiting for a GPU, held by features" in "\n".join(shown)
