"""resource_limits of workers that are processes of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from localpachd.worker.machine import worker_limits
from localpachd.worker.tasks import Task
from tests.localpachd.worker.bench import BEST, Bench
from tests.localpachd.worker.plain_batches import batched

_MEBI = 1 << 20
_LIMIT = 48 * _MEBI
_HANG = "import signal; signal.pause()"
_OVER = "and resource_limits.memory allows 48 MiB (OOMKilled): raise it, or let user code hold less at once"


def fill(mebi: int) -> str:
    """The code that writes so much into `file`."""
    return f"for _ in range({mebi}): assert os.write(file, bytes({_MEBI})) == {_MEBI}"


def python(*lines: str, memory: int = _LIMIT) -> Task:
    return Task((sys.executable, "-I", "-S", "-c", "\n".join(lines)), memory=memory, tries=1)


@pytest.mark.parametrize(
    "lines",
    [
        (f"held = bytearray({90 * _MEBI})", _HANG),
        ("import os", f"if os.fork() == 0: held = bytearray({90 * _MEBI})", _HANG),
        (f"import mmap; held = mmap.mmap(-1, {90 * _MEBI})", f"held.write(bytes({_MEBI}) * 90)", _HANG),
        ("import os", f"if os.fork() == 0: os.setsid(); held = bytearray({30 * _MEBI})",
         f"else: held = bytearray({30 * _MEBI})", _HANG),
        ("import os", "file = os.memfd_create('x')", fill(90), _HANG),
        ("import os", f"file = os.memfd_create('x'); held = bytearray({30 * _MEBI})", fill(30), _HANG),
    ],
    ids=["itself", "a child", "shared memory", "two together", "a memfd", "a memfd and more"],
)  # fmt: skip
def test_more_memory_than_the_limit_ends_a_datum_with_the_reason(at_home: Bench, lines: tuple[str, ...]) -> None:
    result = at_home.one(python(*lines))
    assert result.state == "FAILED"
    assert result.reason.startswith("user code held ")
    assert result.reason.endswith(_OVER)


def test_pages_that_the_system_can_take_away_and_shared_ones_do_not_count_twice(at_home: Bench, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(90 * _MEBI))
    result = at_home.one(
        python(
            "import mmap, os",
            f"file = mmap.mmap(os.open({str(large)!r}, os.O_RDONLY), 0, prot=mmap.PROT_READ)",
            "total = sum(file[each] for each in range(0, len(file), 4096))",
            f"held = bytearray({20 * _MEBI})",
            "here, there = os.pipe()",
            "for _ in range(3):",
            "    if os.fork() == 0: os.read(here, 1); os._exit(0)",
            "import time; end = time.monotonic() + 0.5",
            "while time.monotonic() < end: sum(held[:1000])",
            "os.write(there, b'...')",
            "for _ in range(3): os.wait()",
        )
    )
    assert (result.state, result.reason) == ("PROCESSED", "")


def test_a_batched_process_that_holds_too_much_fails_its_datum_and_not_the_next(at_home: Bench) -> None:
    body = f"while True:\n    if 'GREEDY' in next_datum():\n        held = bytearray({90 * _MEBI}); time.sleep(50)"
    task = batched(body, memory=_LIMIT)
    greedy = at_home.datum(at_home.input("in", "/a", {"/a": b"a"}), GREEDY="1")
    modest = at_home.datum(at_home.input("in", "/b", {"/b": b"b"}))
    at_home.run(task, greedy, modest)
    first, second = at_home.results
    assert (first.state, second.state) == ("FAILED", "PROCESSED")
    assert "user code held " in first.reason
    assert "resource_limits.memory allows 48 MiB" in first.reason


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
@pytest.mark.parametrize(("cpus", "seen"), [(0.5, 1), (1.0, 1), (0.0, None), (64.0, None)])
def test_cpu_is_a_number_of_processors(
    at_home: Bench, cpus: float, seen: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # which nproc heeds
    at_home.one(at_home.sh("nproc", cpus=cpus))
    assert at_home.said() == [str(seen or len(os.sched_getaffinity(0)))]


def test_workers_take_turns_on_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 3, 5, 7})
    chosen = {worker_limits.cpu_pinning(2)[-1] for _ in range(4)}
    assert chosen == {"1,3", "5,7"}
    assert len({worker_limits.cpu_pinning(1)[-1] for _ in range(4)}) == 4
    assert worker_limits.cpu_pinning(4) == worker_limits.cpu_pinning(0) == ()


_SHM = "file = os.open('/dev/shm/x', os.O_CREAT | os.O_WRONLY)"


def test_a_worker_has_shared_memory_of_its_own(at_home: Bench) -> None:
    if not at_home.confinement or not at_home.confinement.own_memory:
        pytest.skip("no /dev/shm of its own can be mounted here")
    name = f"of-the-machine-{os.getpid()}"
    place = Path("/dev/shm", name)
    place.write_text("")
    try:
        script = f"test ! -e /dev/shm/{name} && test ! -e /dev/shm/{name}-x && echo x > /dev/shm/{name}-x"
        results = at_home.run(at_home.sh(script), at_home.datum(), at_home.datum())
        linked = at_home.one(at_home.sh(f'ln -s /dev/shm/{name} "$PFS/out/x"'))
    finally:
        place.unlink()
    assert [each.state for each in results] == ["PROCESSED"] * 2
    assert linked.state == "FAILED"
    assert not Path("/dev/shm", f"{name}-x").exists()


def test_files_in_its_shared_memory_count(at_home: Bench) -> None:
    if not at_home.confinement or not at_home.confinement.own_memory:
        pytest.skip("no /dev/shm of its own can be mounted here")
    more = at_home.one(python("import os", f"held = bytearray({30 * _MEBI})", _SHM, fill(30), _HANG))
    assert more.reason.endswith(_OVER)
    full = at_home.one(python("import os", _SHM, fill(90)))
    assert full.reason in ("exit status 1", more.reason) or full.reason.endswith(_OVER)
    mapped = "import mmap; os.ftruncate(file, 30 << 20); held = mmap.mmap(file, 0); held.write(bytes(1 << 20))"
    mapped += "\nfor _ in range(29): held.write(bytes(1 << 20))"
    once = python("import os, time", _SHM.replace("O_WRONLY", "O_RDWR"), mapped, "time.sleep(0.4)")
    assert at_home.one(once).reason == ""


def test_a_command_that_ends_while_its_memory_is_counted_holds_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a good one would be called too large in its last moment."""
    code = f"import mmap, sys; file = open(sys.argv[1], 'w+b'); file.truncate({30 * _MEBI}); "
    code += f"held = mmap.mmap(file.fileno(), 0); held.write(bytes({30 * _MEBI})); print(flush=True); sys.stdin.read()"
    count = worker_limits._held
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        command = [sys.executable, "-c", code, f"{directory}/mapped"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()

            def last(*arguments: Any) -> int:
                found = count(*arguments)
                process.kill()
                process.wait()
                return found

            monkeypatch.setattr(worker_limits, "_held", last)
            held = worker_limits.memory_held(process.pid, [Path(directory)])
    assert 30 * _MEBI < held < 55 * _MEBI


def test_a_tmp_in_memory_counts() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        bench = Bench(Path(directory), BEST)
        over = bench.one(python("import os, tempfile", "file, _ = tempfile.mkstemp()", fill(90), _HANG))
        bench.close()
    assert over.reason.endswith(_OVER)


def test_more_processes_than_a_command_may_have_end_it(at_home: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_limits, "MOST_PROCESSES", 100)
    start = "for _ in range(500):\n    if os.fork() == 0: signal.pause()"
    result = at_home.one(python("import signal, os", start, _HANG, memory=0))
    assert re.fullmatch(
        r"user code had [\d,]+ processes at once, and a command may have 100: let it wait for the end of some .*",
        result.reason,
    )
