"""Lazy inputs: named pipes that are read, left alone, read in part, read at once, and read twice."""

from __future__ import annotations

import gc
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.worker.layout.lazy_pipes import LazyPipes
from localpachd.worker.layout.pipe_budget import PipeBudget
from tests.localpachd.worker.bench import Bench

BIG = bytes(range(256)) * 12_000
"""Three million bytes: more than any pipe holds."""


def test_lazy_files_are_pipes_with_the_files_bytes(bench: Bench) -> None:
    content = {"/d/big": BIG, "/d/small": b"small", "/d/e/none": b""}
    script = 'cd "$in"; [ -p big ] && [ -p e/none ]; cat small e/none > "$PFS/out/joined"; cat big > "$PFS/out/big"'
    result = bench.one(bench.sh(script), bench.input("in", "/d/", content, lazy=True))
    assert result.state == "PROCESSED"
    assert bench.output(result) == {"/big": BIG, "/joined": b"small"}
    assert result.stats.download_bytes == len(BIG) + len(b"small")


def test_a_file_that_is_not_opened_is_not_loaded(bench: Bench) -> None:
    content = {"/a": b"a" * 100, "/b": BIG}
    result = bench.one(bench.sh('ls "$in" > "$PFS/out/l"; cat "$in/a"'), bench.input("in", "/", content, lazy=True))
    assert bench.output(result) == {"/l": b"a\nb\n"}
    assert result.stats.download_bytes == 100


def test_pipes_can_be_read_by_turns(bench: Bench) -> None:
    content = {"/a": b"a\n" * 1_000_000, "/b": b"b\n" * 1_000_000}
    task = bench.sh('paste -d "" "$in/a" "$in/b" | uniq -c > "$PFS/out/pasted"')
    result = bench.one(task, bench.input("in", "/", content, lazy=True))
    assert bench.output(result)["/pasted"].split() == [b"1000000", b"ab"]


def test_a_pipe_need_not_be_read_to_its_end_but_the_log_says_so(bench: Bench) -> None:
    result = bench.one(bench.sh('head -c 10 "$in" > "$PFS/out/f"'), bench.input("in", "/f", {"/f": BIG}, lazy=True))
    assert bench.output(result) == {"/f": BIG[:10]}
    # Whether the pipe broke before the datum had ended is a matter of timing; the log says so at most once.
    told = [line for line in bench.said(user=False) if "not read to its end" in line]
    assert len(told) <= 1


@pytest.mark.parametrize("data", [b"short", BIG])
@pytest.mark.parametrize("first", ["cat", "head -c 2"])
def test_opening_a_pipe_again_fails_the_datum_with_a_reason(bench: Bench, data: bytes, first: str) -> None:
    task = bench.sh(f'{first} "$in" > /dev/null; cat "$in" > /dev/null; sleep 50', datum_timeout=50.0)
    result = bench.one(task, bench.input("in", "/f", {"/f": data}, lazy=True))
    assert result.state == "FAILED"
    assert result.reason.startswith("the lazy file /pfs/in/f was opened a second time")


def test_a_second_opening_counts_while_the_first_is_being_served(tmp_path: Path) -> None:
    """Even if the thread that serves the pipes is late: here it hangs while the first reader comes and goes."""
    told: queue.Queue[str] = queue.Queue()
    released = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield b"short"
        released.wait()

    pipes = LazyPipes(PipeBudget(), tmp_path / "nursery", lambda _: None, told.put)
    assert pipes.add(f"{tmp_path}/p", "p", slowly)
    pipes.start()
    with (tmp_path / "p").open("rb", buffering=0) as first:
        assert first.read(2) == b"sh"
    second = os.open(tmp_path / "p", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):  # it would wait for ever
        os.read(second, 3)
    os.close(second)
    released.set()
    assert told.get().startswith("the lazy file p was opened a second time")
    pipes.close()


def test_a_pipe_that_was_replaced_before_it_was_read_is_left_alone(bench: Bench) -> None:
    task = bench.sh('exec 3< "$in"; echo mine > copy; mv copy "$in"; cat <&3; cat "$in"; cat "$in"', datum_timeout=50.0)
    assert bench.one(task, bench.input("in", "/f", {"/f": b"given\n"}, lazy=True)).state == "PROCESSED"
    assert bench.said() == ["given", "mine", "mine"]


def test_a_lost_chunk_fails_the_datum_with_a_reason(bench: Bench) -> None:
    given = bench.input("in", "/f", {"/f": b"content"}, lazy=True)
    bench.lose_all_chunks()
    result = bench.one(bench.sh('cat "$in"; sleep 50'), given)
    assert "is not in the store" in result.reason


def test_a_reader_that_is_still_at_it_does_not_hold_up_the_next_datum(bench: Bench) -> None:
    # The reader in the background is killed with its group while its pipe is being filled.
    task = bench.sh('(exec 3< "$in"; read -r line <&3; touch "$PFS/out/read"; sleep 50) & '
                    'until [ -e "$PFS/out/read" ]; do :; done', datum_timeout=50.0)  # fmt: skip
    given = bench.input("in", "/f", {"/f": b"line\n" * 1_000_000}, lazy=True)
    assert [each.state for each in bench.run(task, bench.datum(given), bench.datum(given))] == ["PROCESSED"] * 2


def test_more_lazy_files_than_pipes_become_ordinary_files(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.stores.pipes, "_left", 2)
    content = {f"/{number}": str(number).encode() for number in range(5)}
    task = bench.sh('cd "$in"; for f in *; do [ -p $f ] && echo pipe; cat $f >> "$PFS/out/all"; done')
    given = bench.input("in", "/", content, lazy=True)
    first, second = bench.run(task, bench.datum(given), bench.datum(given))
    assert bench.output(first) == bench.output(second) == {"/all": b"01234"}
    assert bench.said() == ["pipe"] * 4


def test_events_of_an_earlier_datum_are_no_harm_even_if_the_system_has_dropped_some(tmp_path: Path) -> None:
    """Thousands of deleted files leave an event each, which nobody reads until the next datum is served."""
    told: list[str] = []
    pipes = LazyPipes(PipeBudget(), tmp_path / "nursery", lambda _: None, told.append)
    assert pipes.add(f"{tmp_path}/early", "early", lambda: iter((b"early",)))
    for _ in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 1):
        os.close(os.open(tmp_path / "early", os.O_RDONLY | os.O_NONBLOCK))  # two events
    pipes.clear()
    assert pipes.add(f"{tmp_path}/late", "late", lambda: iter((b"late",)))
    pipes.start()
    assert (tmp_path / "late").read_bytes() == b"late"
    pipes.close()
    assert told == []


def test_many_lazy_files(bench: Bench) -> None:
    content = {f"/{number:04}": b"." for number in range(200)}
    result = bench.one(bench.sh('cat "$in"/* | wc -c > "$PFS/out/n"'), bench.input("in", "/", content, lazy=True))
    assert bench.output(result)["/n"].strip() == b"200"


def test_closing_releases_readers_and_file_descriptors(tmp_path: Path) -> None:
    gc.collect()  # what earlier tests have left open
    before = len([*Path("/dev/fd").iterdir()])
    budget = PipeBudget()
    left = budget._left
    pipes = LazyPipes(budget, tmp_path / "nursery", lambda _: None, lambda _: None)
    assert pipes.add(f"{tmp_path}/p", "p", lambda: iter((b"x" * 10,)))
    pipes.start()
    with (tmp_path / "p").open("rb") as reader:
        assert reader.read() == b"x" * 10
    reader = (tmp_path / "p").open("rb")
    pipes.close()
    assert reader.read() in (b"", b"x" * 10)
    reader.close()
    assert budget._left == left
    assert len([*Path("/dev/fd").iterdir()]) == before
