"""Processes that are kept between datum sets: the sets that they serve, and each reason for which they end."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localpachd.worker.datum_set_watch import TIMED_OUT
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.secret_store import Secret
from localpachd.worker.tasks import CancelToken, DatumResult, LogLine, SecretUse, Task, WorkerPod
from speclang.warm_annotations import WarmSettings
from tests.localpachd.worker.bench import BEST, Bench
from tests.localpachd.worker.plain_batches import batched

LONG = WarmSettings(600, 1 << 30)

COUNT = """
import fcntl
alive = open(os.environ["ALIVE"])
fcntl.flock(alive, fcntl.LOCK_SH)
seen, error = 0, ""
while True:
    env = next_datum(error)
    seen, error = seen + 1, ""
    (pfs / "out" / "seen").write_text(str(seen))
"""
"""Writes the number of datums that the process has seen, and holds a lock for as long as it lives."""


class Place:
    """A worker room with tasks that may be kept, and a file that their living processes lock."""

    def __init__(self, bench: Bench, directory: Path) -> None:
        self.bench = bench
        self.directory = directory
        self._alive = directory / "alive"
        self._alive.touch()

    def task(self, body: str = "", warm: WarmSettings | None = LONG, **more: Any) -> Task:
        """A task that counts its datums and then does `body`."""
        own = "".join(f"    {line}\n" for line in body.splitlines())
        env = {"ALIVE": str(self._alive), "HERE": str(self.directory), **more.pop("env", {})}
        return batched(COUNT + own, warm=warm, env=env, **more)

    def seen(self, task: Task, **env: str) -> str:
        """Runs a set of one datum; returns how many datums its process has seen."""
        return self.of(*self.bench.run(task, self.bench.datum(**env)))

    def of(self, result: DatumResult) -> str:
        assert (result.state, result.reason) == ("PROCESSED", "")
        return self.bench.output(result)["/seen"].decode()

    def await_end(self) -> None:
        """Waits until no process is alive."""
        with self._alive.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)

    @property
    def alive(self) -> bool:
        """Whether a process is alive."""
        with self._alive.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@pytest.fixture
def place(at_home: Bench, tmp_path: Path) -> Place:
    return Place(at_home, tmp_path)


def test_a_process_serves_the_next_set(place: Place) -> None:
    task = place.task('print("working on", env["PACH_JOB_ID"], flush=True)')
    datums = [place.bench.datum(PACH_JOB_ID=f"job-{number}") for number in range(3)]
    first = place.bench.run(task, *datums[:2])
    assert [place.of(each) for each in first] == ["1", "2"]
    assert place.bench.runner.warm == 1
    assert place.bench.runner.workers == 0
    assert "user code waits for the next datum set, for 600 s at most" in place.bench.said(user=False)
    place.bench.lines.clear()
    assert [place.of(each) for each in place.bench.run(task, datums[2])] == ["3"]
    assert place.bench.lines[1] == LogLine(datums[2].id, True, "working on job-2")
    assert place.bench.said() == ["working on job-2"]
    assert place.bench.lines[0].message.endswith("goes on with this datum set")


def test_inputs_are_those_of_the_set(place: Place) -> None:
    task = place.task('(pfs / "out" / "f").write_bytes(pathlib.Path(env["in"]).read_bytes())\nalive.seek(0)')
    for number, lazy in enumerate((False, True, True, False), start=1):
        given = place.bench.input("in", f"/{number}", {f"/{number}": b"%d" % number * 100_000}, lazy=lazy)
        (result,) = place.bench.run(task, place.bench.datum(given))
        assert place.of(result) == str(number)
        assert place.bench.output(result)["/f"] == b"%d" % number * 100_000


def test_lines_between_two_sets_are_in_the_log_of_the_second(place: Place) -> None:
    os.mkfifo(place.directory / "go")
    os.mkfifo(place.directory / "said")
    body = """
if seen == 1:
    import threading
    def speak():
        open(os.environ["HERE"] + "/go").read()
        print("in between", flush=True)
        open(os.environ["HERE"] + "/said", "w").close()
    threading.Thread(target=speak, daemon=True).start()
"""
    task = place.task(body)
    place.seen(task)
    place.bench.lines.clear()
    (place.directory / "go").write_text("")
    (place.directory / "said").read_text()
    assert place.seen(task) == "2"
    assert LogLine("", True, "in between") in place.bench.lines


@pytest.mark.parametrize("other", [{"warm": None}, {"env": {"MORE": "1"}}, {"pod": WorkerPod(worker="another")}])
def test_another_task_gets_a_process_of_its_own(place: Place, other: dict[str, Any]) -> None:
    assert place.seen(place.task()) == "1"
    assert place.seen(place.task(**other)) == "1"


def test_nothing_is_kept_without_being_asked_for(place: Place) -> None:
    assert place.seen(place.task(warm=None)) == "1"
    assert not place.alive
    plain = place.bench.sh("true", warm=LONG)
    assert place.bench.one(plain).state == "PROCESSED"
    assert place.bench.runner.warm == 0


def test_a_process_that_waits_too_long_ends(place: Place) -> None:
    task = place.task(warm=WarmSettings(1, 1 << 30))
    assert place.seen(task) == "1"
    place.await_end()
    assert place.bench.runner.warm == 0
    assert place.seen(task) == "1"


def test_a_process_that_holds_too_much_memory_ends_with_its_set(place: Place) -> None:
    task = place.task("if seen == 2: held = bytearray(200 << 20)", warm=WarmSettings(600, 150 << 20))
    assert [place.seen(task) for _ in range(3)] == ["1", "2", "1"]
    said = [text for text in place.bench.said(user=False) if "of memory" in text]
    assert len(said) == 1
    assert said[0].startswith("user code is not kept for the next datum set: it holds 2")
    assert said[0].endswith("MiB of memory, and the pipeline allows 150 MiB")


def test_memory_of_descendants_counts(place: Place) -> None:
    child = "import sys; held = bytearray(200 << 20); print(1, flush=True); sys.stdin.read()"
    body = f"""
import subprocess
child = subprocess.Popen(["python3", "-c", {child!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
"""
    task = place.task(body, warm=WarmSettings(600, 150 << 20))
    assert [place.seen(task) for _ in range(2)] == ["1", "1"]


def test_a_set_with_a_failed_datum_ends_the_process(place: Place) -> None:
    task = place.task('if env["N"] == "bad": error = "no good"')
    for bad_at in range(3):
        datums = [place.bench.datum(N="bad" if number == bad_at else "") for number in range(3)]
        states = [result.state for result in place.bench.run(task, *datums)]
        assert states == ["FAILED" if number == bad_at else "PROCESSED" for number in range(3)]
        assert not place.alive


def test_a_cancelled_set_ends_the_process(place: Place) -> None:
    task = place.task('print("working", flush=True)\nif env.get("N") == "hang": time.sleep(50)')
    assert place.seen(task) == "1"
    token = CancelToken()

    def log(line: LogLine) -> None:
        if line.message == "working":
            token.cancel()

    results: list[DatumResult] = []
    place.bench.runner.run_set(task, [place.bench.datum(N="hang")], results.append, log, token)
    assert results == []
    assert not place.alive


def test_a_process_that_died_while_it_waited_is_replaced(place: Place) -> None:
    os.mkfifo(place.directory / "go")
    body = """
if seen == 1:
    import threading
    def die():
        open(os.environ["HERE"] + "/go").read()
        os._exit(9)
    threading.Thread(target=die, daemon=True).start()
"""
    task = place.task(body)
    assert place.seen(task) == "1"
    (place.directory / "go").write_text("")
    place.await_end()
    assert place.seen(task) == "1"
    assert place.bench.results[-1].state == "PROCESSED"


@pytest.mark.parametrize("way", ['error = "stale"', "os._exit(3)"])
def test_no_datum_fails_because_its_process_is_warm(place: Place, way: str) -> None:
    task = place.task(f"if seen > 1: {way}", err_cmd=("sh", "-c", "echo recovering"))
    assert [place.seen(task) for _ in range(2)] == ["1", "1"]
    assert "trying again in a new process: that one was kept from an earlier datum set" in place.bench.said(user=False)
    assert "recovering" not in place.bench.said()


def test_a_bad_datum_fails_in_a_warm_process_as_in_a_new_one(place: Place) -> None:
    task = place.task('if env.get("N") == "bad": error = "no good"')
    assert place.seen(task) == "1"
    (result,) = place.bench.run(task, place.bench.datum(N="bad"))
    assert (result.state, result.reason) == ("FAILED", "no good")


def test_a_bad_output_counts_as_an_attempt(place: Place) -> None:
    task = place.task('(pfs / "out" / env.get("NAME", "f")).touch()')
    assert place.seen(task) == "1"
    (result,) = place.bench.run(task, place.bench.datum(NAME="*"))
    assert "cannot be represented in PFS" in result.reason
    assert not place.alive


def test_a_datum_that_hangs_in_a_warm_process_times_out_once(place: Place) -> None:
    task = place.task('if env.get("N") == "hang": time.sleep(50)', datum_timeout=2.0)
    assert place.seen(task) == "1"
    (result,) = place.bench.run(task, place.bench.datum(N="hang"))
    assert (result.state, result.reason) == ("FAILED", TIMED_OUT)
    assert not place.alive


@pytest.mark.parametrize("told", [True, False])
def test_a_changed_secret_ends_the_process(place: Place, told: bool) -> None:
    secrets = place.bench.secrets
    secrets.create(Secret("s", "Opaque", 1, {"word": b"one"}))
    if told:
        secrets.observe(place.bench.runner.look)
    body = '(pfs / "out" / "word").write_text(os.environ["WORD"])'
    task = place.task(body, secrets=(SecretUse("s", "word", "WORD"),))
    assert [place.seen(task) for _ in range(2)] == ["1", "2"]
    secrets.delete("s")
    if told:
        place.await_end()
    secrets.create(Secret("s", "Opaque", 1, {"word": b"two"}))
    assert place.seen(task) == "1"
    assert place.bench.output(place.bench.results[-1])["/word"] == b"two"


def test_another_secret_leaves_the_process_alone(place: Place) -> None:
    place.bench.secrets.observe(place.bench.runner.look)
    task = place.task()
    assert place.seen(task) == "1"
    place.bench.secrets.create(Secret("other", "Opaque", 1, {"word": b"one"}))
    assert place.seen(task) == "2"


def test_a_changed_file_of_the_package_ends_the_process(place: Place) -> None:
    package = place.directory / "code" / "mine"
    package.mkdir(parents=True)
    task = place.task()
    (package / "__init__.py").touch()
    (package / "part.py").write_text("first = 1")
    (package / "main.py").write_text(task.cmd[-1])
    task = replace(task, cmd=("python3", "-m", "mine.main"), env={**task.env, "PYTHONPATH": str(package.parent)})
    assert [place.seen(task) for _ in range(2)] == ["1", "2"]
    (package / "part.py").write_text("first = 2")
    assert [place.seen(task) for _ in range(2)] == ["1", "2"]


def test_a_file_that_changes_during_a_set_ends_the_process_with_it(place: Place) -> None:
    script = place.directory / "code" / "main.py"
    script.parent.mkdir()
    task = place.task('open(os.environ["HERE"] + "/code/main.py", "a").write("#")')
    script.write_text(task.cmd[-1])
    task = replace(task, cmd=("python3", str(script)))
    assert [place.seen(task) for _ in range(2)] == ["1", "1"]
    assert not place.alive


def test_code_that_is_an_input_is_not_kept(place: Place) -> None:
    task = place.task()
    task = replace(task, cmd=(*task.cmd, "--config=/pfs/in/config.json"))
    assert [place.seen(task) for _ in range(2)] == ["1", "1"]
    text = (
        "user code is not kept for the next datum set: its command names files of its inputs, which another job may "
        "have others of"
    )
    assert place.bench.said(user=False).count(text) == 1


def test_a_version_that_is_over_ends_the_process(place: Place) -> None:
    old, new = (place.task(pod=WorkerPod(pipeline="p", spec_commit=each)) for each in ("old", "new"))
    assert place.seen(old) == "1"
    place.bench.runner.keep({"old", "new"})
    assert [place.seen(old), place.seen(new)] == ["2", "1"]
    place.bench.runner.keep({"new"})
    assert place.seen(old) == "1"
    assert place.seen(new) == "2"
    assert place.bench.runner.warm == 1


def test_a_process_that_holds_a_gpu_ends_with_its_set(tmp_path: Path) -> None:
    bench = Bench(tmp_path, BEST, GpuPool(("0",)))
    place = Place(bench, tmp_path)
    assert place.seen(place.task(gpus=1)) == "1"
    assert not place.alive
    assert bench.gpus.holders() == {}
    assert place.seen(place.task(gpus=2)) == "1"  # more than there are: on the CPU
    assert place.alive
    bench.close()
    assert not place.alive


def test_the_one_that_was_used_first_makes_room(tmp_path: Path) -> None:
    bench = Bench(tmp_path, BEST, most_warm=2)
    place = Place(bench, tmp_path)
    one, two, three = (place.task(pod=WorkerPod(worker=str(number))) for number in range(3))
    assert [place.seen(each) for each in (one, two, one, three)] == ["1", "1", "2", "1"]
    assert bench.runner.warm == 2
    assert [place.seen(each) for each in (one, three, two)] == ["3", "2", "1"]
    bench.close()


def test_nothing_is_kept_once_the_runner_is_closed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, BEST)
    place = Place(bench, tmp_path)
    assert place.seen(place.task()) == "1"
    bench.close()
    assert not place.alive
