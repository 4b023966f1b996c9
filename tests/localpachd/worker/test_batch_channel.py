"""Batched processes: the datums they get, also over the real protocol, their failures, and the rest of the set."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from localpachd.worker.batch_session import BatchChannel
from localpachd.worker.datum_set_watch import TIMED_OUT, DatumSetWatch
from localpachd.worker.tasks import CancelToken, DatumResult, LogLine, Task
from stages.datum import datum_messages
from tests.conditions import until
from tests.localpachd.worker.bench import Bench
from tests.localpachd.worker.plain_batches import batched

# Not with python_pachyderm, whose import takes most of the time of such a process; test_loopback_servers has that.
_CLIENT = f"""{inspect.getsource(datum_messages)}
import grpc, os, pathlib, sys, time
channel = grpc.insecure_channel("127.0.0.1:" + os.environ["PPS_WORKER_GRPC_PORT"])
ask = channel.unary_unary(METHOD, request, env)
pfs = pathlib.Path(os.environ.get("LOCALPACHD_PFS", "/pfs"))
def next_datum(error=""):
    return dict(entry.split("=", 1) for entry in ask(error))
"""


def asking(body: str, **more: Any) -> Task:
    """As `batched`, over gRPC."""
    return Task(("python3", "-c", _CLIENT + body), batching=True, **{"tries": 1, **more})


COPY = """
print("loaded", flush=True)
env = next_datum()
while True:
    (pfs / "out" / env["N"]).write_bytes(pathlib.Path(env["in"]).read_bytes())
    print("done with", env["N"], flush=True)
    env = next_datum()
"""


def test_one_process_processes_a_set(over_grpc: Bench) -> None:
    datums = [over_grpc.datum(over_grpc.input("in", "/f", {"/f": b"%d" % n}), N=str(n)) for n in range(5)]
    results = over_grpc.run(asking(COPY), *datums)
    assert [result.state for result in results] == ["PROCESSED"] * 5
    assert [over_grpc.output(result) for result in results] == [{f"/{n}": b"%d" % n} for n in range(5)]
    assert over_grpc.said() == ["loaded", *(f"done with {n}" for n in range(5))]
    if over_grpc.confinement is not None:  # an engine may pass output on late, under the next datum
        assert [line.datum_id for line in over_grpc.lines if line.message == "done with 3"] == [datums[3].id]


def test_variables_come_with_the_reply_and_in_the_file(over_grpc: Bench) -> None:
    body = """
assert "in" not in os.environ and os.environ["MINE"] == "1"
env = next_datum()
assert env["in"] == str(pfs / "in" / "f") and env["in_COMMIT"] == "0" * 32 and env["MINE"] == "1", env
assert env["PPS_WORKER_GRPC_PORT"] == os.environ["PPS_WORKER_GRPC_PORT"]
assert env["odd"] == "a=b #c"
assert "odd=a=b #c" in (pfs / ".env").read_text().splitlines()
next_datum()
"""
    task = asking(body, env={"MINE": "1"})
    (result,) = over_grpc.run(task, over_grpc.datum(over_grpc.input("in", "/f", {"/f": b""}), odd="a=b #c"))
    assert (result.state, result.reason) == ("PROCESSED", "")


def test_a_reported_error_is_the_reason_and_the_process_starts_anew(at_home: Bench, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    body = f"""
open({str(starts)!r}, "a").write("x")
env = next_datum()
while True:
    (pfs / "out" / "partial").write_text(env["N"])
    env = next_datum("no good: " + env["N"] if env["N"] == "1" else "")
"""
    results = at_home.run(batched(body, tries=2), *(at_home.datum(N=str(n)) for n in range(3)))
    assert [result.state for result in results] == ["PROCESSED", "FAILED", "PROCESSED"]
    assert results[1].reason == "no good: 1"
    assert at_home.output(results[1]) == {"/partial": b"1"}
    assert starts.read_text() == "xxx"


def test_err_cmd_recovers_in_the_datums_tree(bench: Bench) -> None:
    err = ("sh", "-c", 'test -e "${LOCALPACHD_PFS:-/pfs}/out/$N"')
    body = 'env = next_datum()\n(pfs / "out" / env["N"]).touch()\nnext_datum("bad")'
    (result,) = bench.run(batched(body, err_cmd=err), bench.datum(N="7"))
    assert (result.state, result.reason) == ("RECOVERED", "bad")


def test_a_process_that_dies_on_a_datum_fails_it_alone(bench: Bench) -> None:
    body = """
env = next_datum()
while True:
    if env["N"] == "1":
        sys.exit("something is wrong")
    if env["N"] == "2":
        sys.exit(0)
    env = next_datum()
"""
    results = bench.run(batched(body), *(bench.datum(N=str(n)) for n in range(4)))
    assert [result.state for result in results] == ["PROCESSED", "FAILED", "FAILED", "PROCESSED"]
    assert results[1].reason == "user code exited prematurely: exit status 1: something is wrong"
    assert results[2].reason == "user code exited prematurely: exit status 0"


def test_a_process_that_never_asks_fails_the_whole_set_with_a_reason(at_home: Bench, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    task = at_home.sh(f"echo x >> {starts}; echo No module named foo >&2; exit 1", batching=True, tries=3)
    results = at_home.run(task, *(at_home.datum() for _ in range(4)))
    reason = "user code exited before its first call of NextDatum: exit status 1: No module named foo"
    assert [(result.state, result.reason) for result in results] == [("FAILED", reason)] * 4
    assert starts.read_text() == "x\n" * 3  # not again for each datum


def test_a_program_that_does_not_exist_fails_every_datum(bench: Bench) -> None:
    results = bench.run(Task(("no-such",), batching=True), bench.datum(), bench.datum())
    assert [result.reason for result in results] == ['exec: "no-such": executable file not found in $PATH'] * 2


def test_a_process_that_dies_while_it_waits_is_replaced(bench: Bench) -> None:
    flag = f"{bench.shared}/flag"
    body = f"""
env = next_datum()
if not pathlib.Path({flag!r}).exists():
    pathlib.Path({flag!r}).touch()
    socket.create_connection(("127.0.0.1", int(os.environ["PPS_WORKER_GRPC_PORT"]))).sendall(b'""\\n')
    os._exit(5)
while True:
    env = next_datum()
"""
    results = bench.run(batched(body, tries=2), *(bench.datum() for _ in range(3)))
    assert [result.state for result in results] == ["PROCESSED"] * 3


def test_a_command_that_is_not_batched_gets_an_error_from_next_datum(over_grpc: Bench) -> None:
    body = """
try:
    next_datum()
except grpc.RpcError as refusal:
    print(refusal.details())
"""
    assert over_grpc.one(replace(asking(body), batching=False)).state == "PROCESSED"
    assert over_grpc.said() == ["datum batching not enabled"]


def test_a_hanging_datum_is_ended_and_the_next_one_runs(bench: Bench) -> None:
    body = """
env = next_datum()
while True:
    if env["N"] == "0":
        time.sleep(50)
    env = next_datum()
"""
    first, second = bench.run(batched(body, datum_timeout=2.0), bench.datum(N="0"), bench.datum(N="1"))
    assert first.state == "FAILED"
    assert "datum_timeout" in first.reason
    assert second.state == "PROCESSED"


def test_loading_does_not_count_towards_the_timeout(at_home: Bench, tmp_path: Path) -> None:
    """A process loads until a datum with the same limit, which began later, has timed out."""
    (tmp_path / "loading").mkdir()
    loading = f"here = pathlib.Path({str(tmp_path / 'loading')!r})\n(here / 'begun').touch()\n"
    loading += "while not (here / 'over').exists(): time.sleep(0.02)\n"
    task = batched(loading + "next_datum(); next_datum()", datum_timeout=1.0)
    loaded: list[DatumResult] = []
    run = partial(at_home.runner.run_set, task, [at_home.datum()], loaded.append, at_home.lines.append, CancelToken())
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(run)
        until((tmp_path / "loading" / "begun").exists)
        (late,) = at_home.run(batched("next_datum(); time.sleep(50)", datum_timeout=1.0), at_home.datum())
        (tmp_path / "loading" / "over").touch()
        done.result()
    assert (late.state, late.reason) == ("FAILED", TIMED_OUT)
    assert [result.state for result in loaded] == ["PROCESSED"]


def test_cancelling_releases_a_waiting_call(bench: Bench) -> None:
    token = CancelToken()

    def log(line: LogLine) -> None:
        if line.message == "working":
            token.cancel()

    body = 'env = next_datum()\nprint("working", flush=True)\ntime.sleep(50)'
    bench.runner.run_set(bench.there(batched(body)), [bench.datum(), bench.datum()], bench.results.append, log, token)
    assert bench.results == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("process-", "lazy-pipes"))]


def test_lazy_inputs_of_a_batch(bench: Bench) -> None:
    content = {f"/d/{n}": b"%d" % n * 100_000 for n in range(3)}
    body = """
env = next_datum()
while True:
    for path in sorted(pathlib.Path(env["in"]).iterdir()):
        if path.name <= env["N"]:
            (pfs / "out" / path.name).write_bytes(path.read_bytes())
    env = next_datum()
"""
    given = bench.input("in", "/d/", content, lazy=True)
    results = bench.run(batched(body), *(bench.datum(given, N=str(n)) for n in range(3)))
    assert [len(bench.output(result)) for result in results] == [1, 2, 3]
    assert bench.output(results[2]) == {f"/{n}": b"%d" % n * 100_000 for n in range(3)}


def test_a_bad_output_name_restarts_nothing_but_fails_the_datum(bench: Bench) -> None:
    body = """
env = next_datum()
while True:
    (pfs / "out" / env["N"]).touch()
    env = next_datum()
"""
    results = bench.run(batched(body), bench.datum(N="a"), bench.datum(N="*"), bench.datum(N="b"))
    assert [result.state for result in results] == ["PROCESSED", "FAILED", "PROCESSED"]
    assert "cannot be represented in PFS" in results[1].reason


class _Ports:
    """A BatchServer that cannot be reached."""

    def open(self, handler: object) -> int:
        return 1

    def close(self, port: int) -> None:
        pass


def test_a_call_that_is_made_again_replaces_the_one_that_waits() -> None:
    with DatumSetWatch(CancelToken(), lambda: None) as watch:
        batch = BatchChannel(_Ports(), watch.condition)
        answers: list[tuple[int, list[str] | None]] = []
        threads = [
            threading.Thread(target=lambda n=n: answers.append((n, batch.next_datum("ignored"))), daemon=True)
            for n in range(2)
        ]
        threads[0].start()
        watch.wait(lambda: batch.idle)
        threads[1].start()
        threads[0].join()
        assert answers == [(0, None)]
        assert batch.idle
        batch.give(["A=1"])
        threads[1].join()
        assert answers[1:] == [(1, ["A=1"])]
        assert not batch.idle
        last = threading.Thread(target=lambda: answers.append((2, batch.next_datum("broken"))))
        last.start()
        assert watch.wait(lambda: batch.idle) is None
        assert batch.error == "broken"
        batch.close()
        last.join()
        assert answers[2:] == [(2, None)]
