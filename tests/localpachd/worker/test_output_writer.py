"""A large output is stored while the next datum runs, and no datum can change that of another."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from localpachd import ids
from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, write_layer
from localpachd.worker import datum_set_run
from localpachd.worker.layout.pfs_layout import DatumPlacement, PfsLayout
from localpachd.worker.layout.pipe_budget import PipeBudget
from localpachd.worker.tasks import CancelToken, DatumWork, InputFile, Task
from tests.localpachd.worker.bench import Bench
from tests.localpachd.worker.plain_batches import batched

Store = Callable[[Iterable[bytes]], FileContent]

LARGE = datum_set_run._LARGE
WRITE = f'head -c {LARGE} /dev/zero | tr "\\0" $N > "$PFS/out/large"; '


def _instead(bench: Bench, monkeypatch: pytest.MonkeyPatch, first: Callable[[], object]) -> None:
    """Has something happen before the first output is stored."""
    store: Store = bench.chunks.store
    left = [first]

    def patched(pieces: Iterable[bytes]) -> FileContent:
        if left:
            left.pop()()
        return store(pieces)

    monkeypatch.setattr(bench.chunks, "store", patched)


def _datums(bench: Bench, count: int) -> list[DatumWork]:
    # Ids that are found in no other path, as real ones.
    return [bench.datum(id=uuid4().hex, N=str(number)) for number in range(1, count + 1)]


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A pipe by which a datum and the server wait for each other."""
    place = tmp_path / "line"
    os.mkfifo(place)
    place.chmod(0o666)
    return place


def test_the_next_datum_runs_meanwhile(at_home: Bench, line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the first output would wait for the second datum for ever."""
    datums = _datums(at_home, 3)
    _instead(at_home, monkeypatch, lambda: line.read_text())
    results = at_home.run(at_home.sh(f"{WRITE} [ $N != 2 ] || echo > {line}"), *datums)
    assert [result.id for result in results] == [each.id for each in datums]
    for number, result in enumerate(results, start=1):
        assert at_home.output(result) == {"/large": b"%d" % number * LARGE}
        assert result.stats.upload_bytes == LARGE


def test_one_process_writes_outputs_of_every_size(bench: Bench) -> None:
    sizes = [LARGE, 1, LARGE - 1, 2 * LARGE, 0, LARGE]
    body = """
while env := next_datum():
    (pfs / "out" / "d").mkdir()
    (pfs / "out" / "d" / "f").write_bytes(env["N"].encode() * int(env["SIZE"]))
"""
    datums = [bench.datum(N=str(number), SIZE=str(size)) for number, size in enumerate(sizes)]
    results = bench.run(batched(body), *datums)
    assert [result.state for result in results] == ["PROCESSED"] * len(sizes)
    assert [bench.output(each) for each in results] == [{"/d/f": b"%d" % n * size} for n, size in enumerate(sizes)]


def test_the_next_datum_cannot_reach_an_output(at_home: Bench, line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(at_home, monkeypatch, lambda: line.read_text())
    spoil = 'rm -rf "$PFS"/.scratch; for f in "$PFS"/.scratch/*/out/large; do echo spoilt > $f; done'
    task = at_home.sh(f"if [ $N = 1 ]; then {WRITE} else {spoil}; echo > {line}; fi")
    results = at_home.run(task, *_datums(at_home, 2))
    assert at_home.output(results[0]) == {"/large": b"1" * LARGE}


@pytest.mark.parametrize(
    "write",
    [
        f"head -c {LARGE} /dev/zero > $HOME/mine; ln -s $HOME/mine $PFS/out/large",
        f"head -c {LARGE} /dev/zero > $PFS/mine; ln $PFS/mine $PFS/out/large",
    ],
)
def test_files_with_another_name_are_stored_first(at_home: Bench, tmp_path: Path, write: str) -> None:
    """The next datum could change them."""
    spoil = "for f in $HOME/mine $PFS/mine; do [ ! -e $f ] || echo spoilt > $f; done"
    task = at_home.sh(f"{spoil}; {write}", env={"HOME": str(tmp_path)})
    results = at_home.run(task, *_datums(at_home, 3))
    assert [at_home.output(each) for each in results] == [{"/large": bytes(LARGE)}] * 3


def test_a_file_that_is_still_open_is_stored_first(at_home: Bench) -> None:
    """So nothing that is written to it later can be a part of the output."""
    body = f"""
files = []
while env := next_datum():
    for each in files:
        each.write(b"late" * {LARGE}); each.flush()
    files.append(open(pfs / "out" / "large", "wb"))
    files[-1].write(env["N"].encode() * {LARGE}); files[-1].flush()
"""
    results = at_home.run(batched(body), *_datums(at_home, 3))
    assert [at_home.output(each) for each in results] == [{"/large": b"%d" % n * LARGE} for n in (1, 2, 3)]


def test_an_output_that_cannot_be_read_fails_its_datum_alone(at_home: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "large")

    _instead(at_home, monkeypatch, fails)
    first, second = at_home.run(at_home.sh(WRITE), *_datums(at_home, 2))
    assert (first.state, first.output) == ("FAILED", ())
    assert first.reason == "cannot upload /pfs/out/large: Input/output error: large"
    assert [(each.datum_id, each.message) for each in at_home.lines].count((first.id, first.reason)) == 1
    assert at_home.output(second) == {"/large": b"2" * LARGE}


def test_a_cancelled_set_ends_while_an_output_is_stored(
    at_home: Bench, line: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = CancelToken()

    def cancelled() -> None:
        line.read_text()
        token.cancel()

    _instead(at_home, monkeypatch, cancelled)
    task = at_home.sh(f"{WRITE} [ $N = 1 ] || {{ echo > {line}; sleep 50; }}")
    assert list(at_home.run(task, *_datums(at_home, 2), cancel=token)) == []


def test_what_storing_raises_is_raised(at_home: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("no such thing")

    _instead(at_home, monkeypatch, fails)
    with pytest.raises(RuntimeError, match="no such thing"):
        at_home.run(at_home.sh(WRITE), *_datums(at_home, 2))


@pytest.fixture
def placed(tmp_path: Path) -> Iterator[tuple[PfsLayout, DatumPlacement]]:
    layout = PfsLayout(tmp_path / "w" / "pfs", "/pfs", Database(tmp_path / "db"), ChunkStore(tmp_path / "chunks"))
    pipes = layout.lazy_pipes(PipeBudget(), lambda _: None, lambda _: None)
    yield layout, layout.place(DatumWork("f" * 64, (), {}), {}, pipes, lambda: None)
    pipes.close()


@pytest.mark.parametrize("holds", ["open(sys.argv[1] + '/out/file', 'w')", "os.chdir(sys.argv[1] + '/out')"])
def test_a_datum_that_a_process_holds_is_not_set_aside(placed: tuple[PfsLayout, DatumPlacement], holds: str) -> None:
    layout, datum = placed
    program = f"import os, sys; held = {holds}; print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, datum.tree], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert layout.set_aside(datum) is None
    assert datum.tree.is_dir()
    process.communicate()
    aside = layout.set_aside(datum)
    assert aside is not None
    assert not datum.tree.exists()
    assert (aside / "out").is_dir()
    assert not aside.is_relative_to(layout.pfs)


def test_outputs_of_one_large_and_many_small_files_are_in_order(bench: Bench) -> None:
    script = f'cd "$PFS/out"; mkdir a z; head -c {LARGE} /dev/zero > m; echo > a/b; echo > z/y'
    result = bench.one(bench.sh(script))
    assert [each.path for each in result.output] == ["/a/b", "/m", "/z/y"]


_SPARSE = """
from os import O_CREAT, O_RDWR, open, pwrite, truncate
file = open("/pfs/out/sparse", O_CREAT | O_RDWR)
for at in (0, 100 << 20, (100 << 20) + (7 << 20)):
    pwrite(file, b"written", at)
truncate(file, SIZE)
"""


@pytest.mark.parametrize("size", [150 << 20, (150 << 20) + 5, 200 << 30])
def test_holes_of_a_file_are_neither_read_nor_written(at_home: Bench, size: int) -> None:
    if not at_home.mounts:
        pytest.skip("needs /pfs")
    made = at_home.one(Task((sys.executable, "-c", _SPARSE.replace("SIZE", str(size))), tries=1))
    assert (made.state, made.reason) == ("PROCESSED", "")
    (file,) = made.output
    assert (file.content.size, len(set(file.content.chunks))) == (size, 5 if size % ids.CHUNK_SIZE else 4)
    if size < 1 << 30:
        plain = at_home.root / "plain"
        with plain.open("wb") as target:
            for at in (0, 100 << 20, (100 << 20) + (7 << 20)):
                target.seek(at)
                target.write(b"written")
            target.truncate(size)
        assert at_home.chunks.store([plain.read_bytes()]) == file.content
    files = (at_home.db.write(lambda conn: write_layer(conn, [("/sparse", "default", file.content)])),)
    script = 'test $(stat -c %b "$PFS/in/sparse") -lt 65536 && stat -c %s "$PFS/in/sparse" > "$PFS/out/size"'
    script += ' && tail -c +104857601 "$PFS/in/sparse" | head -c 7 > "$PFS/out/part"'
    seen = at_home.one(at_home.sh(script), InputFile("in", "/sparse", files))
    assert at_home.output(seen) == {"/size": f"{size}\n".encode(), "/part": b"written"}
