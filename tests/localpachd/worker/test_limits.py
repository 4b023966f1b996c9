"""resource_limits of workers that are processes of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from localpachd.worker.machine import worker_limits
from localpachd.worker.tasks import Task
from tests.localpachd.worker.bench import Bench

_MEBI = 1 << 20
_LIMIT = 96 * _MEBI
_HANG = "import signal; signal.pause()"
_OVER = "and resource_limits.memory allows 96 MiB: raise it, or let user code hold less at once"


def python(*lines: str, memory: int = _LIMIT) -> Task:
    return Task((sys.executable, "-I", "-S", "-c", "\n".join(lines)), memory=memory)


@pytest.mark.parametrize(
    "lines",
    [
        (f"held = bytearray({200 * _MEBI})", _HANG),
        ("import os", f"if os.fork() == 0: held = bytearray({200 * _MEBI})", _HANG),
        (f"import mmap; held = mmap.mmap(-1, {200 * _MEBI})", f"held.write(bytes({_MEBI}) * 200)", _HANG),
        ("import os", f"if os.fork() == 0: os.setsid(); held = bytearray({60 * _MEBI})",
         f"else: held = bytearray({60 * _MEBI})", _HANG),
    ],
    ids=["itself", "a child", "shared memory", "two together"],
)  # fmt: skip
def test_more_memory_than_the_limit_ends_a_datum_with_the_reason(at_home: Bench, lines: tuple[str, ...]) -> None:
    result = at_home.one(python(*lines))
    assert result.state == "FAILED"
    assert result.reason.startswith("user code held ")
    assert result.reason.endswith(_OVER)


def test_pages_that_the_system_can_take_away_and_shared_ones_do_not_count_twice(at_home: Bench, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(200 * _MEBI))
    result = at_home.one(
        python(
            "import mmap, os",
            f"file = mmap.mmap(os.open({str(large)!r}, os.O_RDONLY), 0, prot=mmap.PROT_READ)",
            "total = sum(file[each] for each in range(0, len(file), 4096))",
            f"held = bytearray({50 * _MEBI})",
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
    program = Path(__file__).parents[3] / "benchmarks" / "server" / "trivial.py"
    code = (
        "import os, runpy, sys; sys.path.insert(0, '.')\n"
        f"source = open({str(program)!r}).read().replace('source = Path', 'held = bytearray({400 * _MEBI}) if "
        'dict(each.split("=", 1) for each in reply.env).get("GREEDY") else b""\\n'
        "            if held: import signal; signal.pause()\\n            source = Path')\n"
        "exec(compile(source, 'trivial', 'exec'), {'__name__': '__main__'})"
    )
    task = Task((sys.executable, "-c", code), batching=True, memory=300 * _MEBI, tries=1)
    greedy = at_home.datum(at_home.input("in", "/a", {"/a": b"a"}), GREEDY="1")
    modest = at_home.datum(at_home.input("in", "/b", {"/b": b"b"}))
    at_home.run(task, greedy, modest)
    first, second = at_home.results
    assert (first.state, second.state) == ("FAILED", "PROCESSED")
    assert "user code held " in first.reason
    assert "resource_limits.memory allows 300 MiB" in first.reason


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
