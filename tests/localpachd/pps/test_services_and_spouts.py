"""Services and spouts: when they run, on which input, and how their jobs end."""

from __future__ import annotations

import socket
import time
import urllib.request
from typing import Any

import pytest

from localpachd.errors import PachError
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pps import pipelines
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_entities import JobState, Pipeline, PipelineState, SpecText
from localpachd.pps.specs.spec import PipelineKind
from tests.localpachd.name_service import SERVER, get
from tests.localpachd.pps.engine import Engine
from tests.servers import OwnPort


class Service:
    """A pipeline `web` that serves the repo `in`."""

    def __init__(self, engine: Engine, own_port: OwnPort) -> None:
        self.engine = engine
        self.port, self.inside = own_port(), own_port()
        engine.repo("in")

    def create(self, glob: str = "/", name: str = "web", port: int = 0, **fields: Any) -> None:
        self.engine.create(
            name,
            {"pfs": {"repo": "in", "glob": glob}},
            "",
            transform={"cmd": ["python3", "-c", SERVER, str(self.inside)], "stdin": []},
            service={"internal_port": self.inside, "external_port": port or self.port},
            **fields,
        )

    def serve(self) -> None:
        """Creates it with an input and waits until that is served."""
        self.engine.put("in", {"/name": "one"})
        self.create()
        assert get(self.port) == "one"

    def states(self) -> list[JobState]:
        return [job.state for job in self.engine.jobs("web")]


@pytest.fixture
def service(engine: Engine, own_port: OwnPort) -> Service:
    return Service(engine, own_port)


def said(engine: Engine, name: str) -> list[str]:
    """The lines that are not of user code, those of the master last."""
    both = [LogQuery(Pipeline("default", name), master=master) for master in (False, True)]
    return [line.message for query in both for line in engine.log(query) if not line.user]


def test_a_service_serves_its_input_while_its_job_runs(engine: Engine, service: Service) -> None:
    service.serve()
    (job,) = engine.jobs("web")
    assert job.state is JobState.RUNNING
    assert [each.path for each in engine.pps.jobs.inspect(job.job).worker_status[0].data] == ["/"]
    assert engine.commit("web").finishing is None
    info = engine.pps.inspect_pipeline(Pipeline("default", "web"))
    assert (info.spec.kind, info.state) == (PipelineKind.SERVICE, PipelineState.RUNNING)
    with pytest.raises(PachError, match="not found"):
        engine.commit("web", kind="meta")
    engine.until(lambda: "serving one" in engine.lines("web"))


def test_a_new_commit_ends_the_job_and_is_served_by_the_next(engine: Engine, service: Service) -> None:
    service.serve()
    engine.put("in", {"/name": "two"})
    assert get(service.port, wanted="two") == "two"
    assert service.states() == [JobState.RUNNING, JobState.SUCCESS]
    assert engine.files("web", engine.jobs("web")[1].job.id) == {}


def test_the_old_input_is_served_until_the_next_commit_is_finished(engine: Engine, service: Service) -> None:
    service.serve()
    branch = Branch(Repo("default", "in"), "master")
    commit = engine.pfs.transact(lambda txn: commits.start(txn, branch))
    engine.until(lambda: service.states() == [JobState.STARTING, JobState.RUNNING])
    assert get(service.port) == "one"
    engine.pfs.transact(lambda txn: commits.finish(txn, commit, error="no good"))
    engine.until(lambda: service.states() == [JobState.UNRUNNABLE, JobState.RUNNING])
    assert get(service.port) == "one"


def test_a_service_that_dies_is_started_again(engine: Engine, service: Service) -> None:
    service.serve()
    _ask_to_exit(service.port)
    assert get(service.port, wanted="one") == "one"
    assert service.states() == [JobState.RUNNING]
    engine.until(lambda: any("exit status 3" in line and "starting again" in line for line in said(engine, "web")))


def _ask_to_exit(port: int) -> None:
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/exit", timeout=10)


def test_a_service_continues_after_a_restart_of_the_server(engine: Engine, service: Service) -> None:
    service.serve()
    engine.restart()
    assert get(service.port) == "one"
    (job,) = engine.jobs("web")
    assert (job.state, job.restart) == (JobState.RUNNING, 1)


def test_a_restarted_datum_is_a_restarted_service(engine: Engine, service: Service) -> None:
    service.serve()
    job = engine.jobs("web")[0].job
    with pytest.raises(PachError, match=r"datum matching filter \[/elsewhere\] could not be found for job ID"):
        engine.pps.restart_datum(job, ["/elsewhere"])
    engine.pps.restart_datum(job, ["/"])
    engine.until(lambda: engine.lines("web") == ["serving one", "serving one"])
    assert get(service.port) == "one"


def test_stopping_the_pipeline_stops_the_service(engine: Engine, service: Service) -> None:
    service.serve()
    engine.step(pipelines.stop, Pipeline("default", "web"))
    engine.until(lambda: service.states() == [JobState.KILLED])
    engine.step(pipelines.start, Pipeline("default", "web"))
    assert get(service.port) == "one"
    engine.pps.delete_pipeline(Pipeline("default", "web"))
    with socket.create_server(("127.0.0.1", 0)):

        def refused() -> bool:
            if not _refused(service.port):
                engine.pfs.changes.wake()
                return False
            return True

        engine.until(refused)


def _refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return True
    time.sleep(0.02)
    return False


def test_without_a_datum_the_job_waits_and_reports_it(engine: Engine, service: Service) -> None:
    service.create(glob="/name")
    engine.until(lambda: any("services must have a single datum" in line for line in said(engine, "web")))
    assert service.states() == [JobState.RUNNING]
    engine.put("in", {"/name": "one"})
    assert get(service.port) == "one"
    assert service.states() == [JobState.RUNNING, JobState.SUCCESS]


def test_more_than_one_datum_is_a_failure(engine: Engine, service: Service) -> None:
    engine.put("in", {"/name": "one", "/other": "two"})
    service.create(glob="/*")
    job = engine.settle("web")
    assert (job.state, job.reason) == (JobState.FAILURE, "services must have a single datum")


def test_a_service_waits_for_a_port_that_is_in_use(engine: Engine, service: Service) -> None:
    engine.put("in", {"/name": "one"})
    with socket.create_server(("127.0.0.1", service.port)):
        service.create()
        engine.until(lambda: any(f"external_port {service.port} is not available" in x for x in said(engine, "web")))
    assert get(service.port, wanted="one") == "one"


def spout(engine: Engine, script: str, **fields: Any) -> None:
    request = {"pipeline": {"name": "s"}, "transform": {"cmd": ["sh", "-c", script]}, "spout": {}}
    engine.submit({**request, **fields})


def test_a_spout_runs_without_jobs_and_again_when_it_ends(engine: Engine) -> None:
    spout(engine, 'echo "port $PEER_PORT"; exit 4')
    engine.until(lambda: engine.lines("s").count("port 9") >= 2)
    info = engine.pps.inspect_pipeline(Pipeline("default", "s"))
    assert (info.spec.kind, info.state) == (PipelineKind.SPOUT, PipelineState.RUNNING)
    assert engine.jobs("s") == []
    lines = list(engine.log(LogQuery(Pipeline("default", "s"))))
    assert {line.job for line in lines} == {"spout"}
    assert any("exit status 4" in line.message for line in lines)


def test_a_spout_stops_and_starts_with_its_pipeline_and_is_replaced_by_an_update(engine: Engine) -> None:
    spout(engine, "echo first; sleep 60")
    engine.until(lambda: engine.lines("s") == ["first"])
    spout(engine, "echo second; sleep 60", update=True)
    engine.until(lambda: engine.lines("s") == ["first", "second"])
    engine.step(pipelines.stop, Pipeline("default", "s"))
    engine.until(lambda: engine.pps.inspect_pipeline(Pipeline("default", "s")).state is PipelineState.PAUSED)
    engine.step(pipelines.start, Pipeline("default", "s"))
    engine.until(lambda: engine.lines("s") == ["first", "second", "second"])
    engine.pps.delete_pipeline(Pipeline("default", "s"))


def test_a_spout_that_is_deleted_and_created_again_in_one_step_is_replaced(engine: Engine) -> None:
    spout(engine, "echo first; sleep 60")
    engine.until(lambda: engine.lines("s") == ["first"])

    def replace(txn: Transaction) -> None:
        pipelines.delete(txn, Pipeline("default", "s"))
        request = {"pipeline": {"name": "s"}, "transform": {"cmd": ["sh", "-c", "echo second; sleep 60"]}}
        engine.pps.add_pipeline(txn, {**request, "spout": {}}, SpecText())

    engine.pfs.transact(replace)
    engine.until(lambda: engine.lines("s") == ["second"])


def test_only_its_spout_may_commit_to_an_output(engine: Engine) -> None:
    spout(engine, "sleep 60")
    output = Branch(Repo("default", "s"), "master")
    with pytest.raises(PachError, match="cannot start a commit on an output branch"):
        engine.pfs.transact(lambda txn: commits.start(txn, output))
    as_spout = engine.pfs.for_spout(output)
    made = as_spout.transact(lambda txn: commits.start(txn, output))
    as_spout.transact(lambda txn: commits.finish_by_user(txn, made.commit, "", "", False))
    assert [each.repo.type for each in engine.commit("s").provenance] == ["spec"]
    with pytest.raises(PachError, match="cannot start a commit on an output branch"):
        engine.pfs.for_spout(Branch(Repo("default", "t"), "master")).transact(lambda txn: commits.start(txn, output))
    assert made.commit == Commit(output.repo, made.commit.id, "master")
