"""Two openings of a lazy file, at every moment at which the second one can come: the datum fails, or the second reader
gets nothing, but never do two share the bytes."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from localpachd.worker.layout import lazy_pipes, linux_files, open_files
from localpachd.worker.layout.lazy_pipes import LazyPipes
from localpachd.worker.layout.linux_files import Inotify
from localpachd.worker.layout.pipe_budget import PipeBudget

_OPENER = """
import os, sys
opened = []
for line in sys.stdin:
    match line.split():
        case ["open", path]:
            opened.append(os.open(path, os.O_RDONLY))
        case ["copy"]:
            opened.append(os.dup(opened[-1]))
        case ["fork"]:
            # The child takes nothing from the input, and ends with its parent.
            end, held = os.pipe()
            if not os.fork():
                os.close(held)
                os.read(end, 1)
                os._exit(0)
        case ["close"]:
            os.close(opened.pop(0))
        case ["read"]:
            with open(opened.pop(0), "rb") as file:
                print(len(file.read()), flush=True)
            continue
    print("done", flush=True)
"""


class _Opener:
    """A process that opens files when it is told to."""

    def __init__(self, *before: str) -> None:
        """before: the command that starts it."""
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", _OPENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, *words: str) -> str:
        """Its answer, once it has done what it was told."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{' '.join(words)}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@pytest.fixture
def openers() -> Iterator[tuple[_Opener, _Opener]]:
    both = _Opener(), _Opener()
    yield both
    for each in both:
        each.process.kill()
        each.process.communicate()


@pytest.fixture
def told() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def lazy(tmp_path: Path, told: queue.Queue[str]) -> Iterator[LazyPipes]:
    """Pipes with the file `p` of three bytes, not served yet."""
    made = LazyPipes(PipeBudget(), tmp_path / "nursery", lambda _: None, told.put)
    assert made.add(f"{tmp_path}/p", "p", lambda: iter((b"abc",)))
    yield made
    made.close()


def _refused(told: queue.Queue[str]) -> bool:
    return told.get(timeout=30).startswith("the lazy file p was opened a second time")


def test_two_processes_before_the_first_is_noticed(
    tmp_path: Path, lazy: LazyPipes, told: queue.Queue[str], openers: tuple[_Opener, _Opener]
) -> None:
    for each in openers:
        each.tell("open", str(tmp_path / "p"))
    lazy.start()
    assert _refused(told)


def test_one_process_twice_before_it_is_noticed(
    tmp_path: Path, lazy: LazyPipes, told: queue.Queue[str], openers: tuple[_Opener, _Opener]
) -> None:
    openers[0].tell("open", str(tmp_path / "p"))
    openers[0].tell("open", str(tmp_path / "p"))
    lazy.start()
    assert _refused(told)


def test_one_opening_in_many_descriptors_and_processes_is_one(
    tmp_path: Path, lazy: LazyPipes, told: queue.Queue[str], openers: tuple[_Opener, _Opener]
) -> None:
    for words in (("open", str(tmp_path / "p")), ("copy",), ("fork",)):
        assert openers[0].tell(*words) == "done"
    lazy.start()
    assert openers[0].tell("read") == "3"
    lazy.clear()
    assert told.empty()


def test_the_second_reads_all_where_the_first_has_closed_it_unread_and_unnoticed(
    tmp_path: Path, lazy: LazyPipes, told: queue.Queue[str], openers: tuple[_Opener, _Opener]
) -> None:
    for each in openers:
        each.tell("open", str(tmp_path / "p"))
    openers[0].tell("close")
    lazy.start()
    assert openers[1].tell("read") == "3"
    lazy.clear()
    assert told.empty()


@pytest.mark.parametrize("moment", ["before the guard", "after the guard", "after the count"])
def test_between_the_steps_with_which_the_first_is_served(
    tmp_path: Path,
    lazy: LazyPipes,
    told: queue.Queue[str],
    openers: tuple[_Opener, _Opener],
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = openers
    opened = threading.Event()

    def open_second() -> None:
        if not opened.is_set():
            opened.set()
            second.tell("open", str(tmp_path / "p"))

    exchange, count = linux_files.swap, open_files.count_openings

    def swapping(left: str, right: str) -> None:
        _in_order(open_second, lambda: exchange(left, right), moment == "before the guard")

    def counting(descriptors: Iterable[int], younger: open_files.YoungerProcesses) -> dict[int, int]:
        found: dict[int, int] = {}

        def look() -> None:
            found.update(count(descriptors, younger))

        _in_order(open_second, look, moment == "after the guard")
        return found

    if moment == "before the guard":
        monkeypatch.setattr(lazy_pipes, "swap", swapping)
    else:
        monkeypatch.setattr(open_files, "count_openings", counting)
    first.tell("open", str(tmp_path / "p"))
    lazy.start()
    assert _refused(told)
    assert opened.is_set()


def _in_order(first: Callable[[], None], second: Callable[[], None], before: bool) -> None:
    for step in (first, second) if before else (second, first):
        step()


def test_the_system_merges_the_events_of_two_openings(tmp_path: Path, openers: tuple[_Opener, _Opener]) -> None:
    """If it did not, they would need no counting."""
    os.mkfifo(tmp_path / "p")
    ends = os.open(tmp_path / "p", os.O_RDWR)
    watching, younger = Inotify(), open_files.YoungerProcesses()
    assert open_files.count_openings([ends], younger) == {ends: 0}
    watching.watch(f"{tmp_path}/p")
    for each in openers:
        each.tell("open", str(tmp_path / "p"))
    assert len(list(watching.events())) == 1
    assert open_files.count_openings([ends], younger) == {ends: 2}
    watching.close()
    os.close(ends)


def test_processes_that_were_started_meanwhile_count(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    ends = os.open(tmp_path / "p", os.O_RDWR)
    younger = open_files.YoungerProcesses()
    assert open_files.count_openings([ends], younger) == {ends: 0}
    late = _Opener()
    late.tell("open", str(tmp_path / "p"))
    assert str(late.process.pid) in list(younger)
    assert open_files.count_openings([ends], younger) == {ends: 1}
    late.process.kill()
    late.process.communicate()
    assert open_files.count_openings([ends], younger) == {ends: 0}
    os.close(ends)


_APART = ("unshare", "--user", "--map-root-user", "--mount")


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*_APART, "true"], capture_output=True).returncode != 0,
    reason="this machine does not let processes have mount namespaces of their own",
)
def test_the_mount_namespace_of_the_last_one_is_looked_at_first(
    tmp_path: Path, openers: tuple[_Opener, _Opener]
) -> None:
    """Each worker has one, and tens of processes of others need not be looked at for each of thousands of files."""
    ends = []
    for name in ("one", "two", "three"):
        os.mkfifo(tmp_path / name)
        ends.append(os.open(tmp_path / name, os.O_RDWR))
    apart, younger = _Opener(*_APART), open_files.YoungerProcesses()
    for opener, end, name in zip((apart, openers[0], apart), ends, ("one", "two", "three"), strict=True):
        opener.tell("open", str(tmp_path / name))
        assert open_files.count_openings([end], younger) == {end: 1}
        _, first = next(younger.in_spaces())
        assert str(opener.process.pid) in first
        assert str((openers[0] if opener is apart else apart).process.pid) not in first
    apart.process.kill()
    apart.process.communicate()
    for end in ends:
        os.close(end)
