import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from stages.datum.contract import DatumInput
from stages.decode import picture_normaliser, picture_reader
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.decoders import BadPicture
from stages.decode.picture_reader import DecodedPicture, UnreadableFile
from stages.record.file_kinds import FileKind
from stages.record.framing import FITS, PAD, Framing
from tests.conditions import until
from tests.example_counts import examples
from tests.stages.faulty_decoders import FAULTY, program

SIDE = 32
FRAMING = Framing(SIDE, PAD)

MEETING = """
def met(data, kind):
    open(os.path.join({place!r}, str(os.getpid())), "w").close()
    while len(os.listdir({place!r})) < 2:
        pass
    return opened(data, kind)
decoders.open_picture = met
decoder_processes.main()
"""
"""One that decodes once a second one is about to do so."""

ALONE = """
load = decoders.PictureFile.load
def alone(self, least):
    os.mkdir(os.path.join({place!r}, "busy"))
    try:
        return load(self, least)
    finally:
        os.rmdir(os.path.join({place!r}, "busy"))
decoders.PictureFile.load = alone
decoder_processes.main()
"""
"""One that fails to decode while another one does."""


@pytest.fixture(scope="module")
def decoders() -> Iterator[DecoderProcesses]:
    with DecoderProcesses(2) as started:
        yield started


@pytest.fixture(scope="module")
def faulty() -> Iterator[DecoderProcesses]:
    with DecoderProcesses(2, program(FAULTY, Path())) as started:
        yield started


def jpeg(seed: int, size: tuple[int, int] = (48, 40)) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (size[1] // 8, size[0] // 8, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize(size).save(file, "JPEG")
    return file.getvalue()


@given(st.integers(0, 2**16), st.sampled_from(FITS), st.booleans(), st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_a_process_decodes_as_this_one_does(
    decoders: DecoderProcesses, seed: int, fit: str, cut: bool, shown: bool
) -> None:
    data, framing, region = jpeg(seed), Framing(SIDE, fit), (0.25, 0.0, 0.75, 0.5) if cut else None
    here, there = (
        of.normalise(data, FileKind.JPEG, framing, region, shown=shown) for of in (picture_normaliser, decoders)
    )
    assert np.array_equal(here.framed.pixels, there.framed.pixels)
    assert (here.framed.size, *here[1:]) == (there.framed.size, *there[1:])
    assert bool(here.thumbnail) == (shown and not cut)


def test_a_process_with_many_open_files_decodes_too() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    with ExitStack() as held:
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            held.enter_context(open(os.devnull, "rb"))  # noqa: PTH123
        decoders = held.enter_context(closing(DecoderProcesses()))
        assert decoders.normalise(jpeg(0), FileKind.JPEG, FRAMING).framed.pixels.shape == (SIDE, SIDE, 3)


def test_a_bad_picture_has_the_same_reason(decoders: DecoderProcesses) -> None:
    for data, kind in ((jpeg(0)[:200], FileKind.JPEG), (b"", FileKind.PNG), (b"II*\0", FileKind.TIFF)):
        with pytest.raises(BadPicture) as here:
            picture_normaliser.normalise(data, kind, FRAMING)
        with pytest.raises(BadPicture) as there:
            decoders.normalise(data, kind, FRAMING)
        assert str(here.value) == str(there.value)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE])
def test_a_picture_that_crashes_its_decoder_is_rejected(faulty: DecoderProcesses, number: signal.Signals) -> None:
    with pytest.raises(BadPicture, match=f"^damaged JPEG picture: its decoder ended with {number.name}$"):
        faulty.normalise(jpeg(1) + b"SIGNAL=" + bytes([number]), FileKind.JPEG, FRAMING)
    assert faulty.normalise(jpeg(1), FileKind.JPEG, FRAMING).size == (48, 40)


@pytest.mark.parametrize(
    ("end", "error", "reason"),
    [
        (b"SIGNAL=" + bytes([signal.SIGKILL]), MemoryError, "killed the decoder of a picture, as it does when memory"),
        (b"SIGNAL=" + bytes([signal.SIGTERM]), RuntimeError, "ended with SIGTERM"),
        (b"STATUS=\x03", RuntimeError, "ended with status 3"),
    ],
)
def test_the_end_of_a_process_for_other_reasons_is_not_the_pictures_fault(
    faulty: DecoderProcesses, end: bytes, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        faulty.normalise(jpeg(1) + end, FileKind.JPEG, FRAMING)
    assert faulty.normalise(jpeg(1), FileKind.JPEG, FRAMING).size == (48, 40)


def test_a_process_that_does_not_start_is_not_the_pictures_fault() -> None:
    with (
        DecoderProcesses(1, [sys.executable, "-c", "import stages_that_are_missing"]) as missing,
        pytest.raises(RuntimeError, match="does not start: it ended with status 1"),
    ):
        missing.normalise(jpeg(1), FileKind.JPEG, FRAMING)


def test_all_other_files_of_a_directory_are_read_in_order(faulty: DecoderProcesses, tmp_path: Path) -> None:
    for number in range(30):
        crash = b"SIGNAL=" + bytes([signal.SIGSEGV]) if number % 7 == 3 else b""
        (tmp_path / f"{number:02}.jpg").write_bytes(jpeg(number) + crash)
    (tmp_path / "15.txt").write_text("no picture")
    found = list(picture_reader.read(DatumInput("images", tmp_path, "", ""), FRAMING, faulty))
    paths = [each.source.path if isinstance(each, DecodedPicture) else each.path for each in found]
    assert paths == sorted(path.name for path in tmp_path.iterdir())
    refused = {each.path for each in found if isinstance(each, UnreadableFile)}
    assert refused == {"15.txt"} | {f"{number:02}.jpg" for number in range(30) if number % 7 == 3}
    for each in found:
        if isinstance(each, DecodedPicture):
            alone = picture_normaliser.normalise(jpeg(int(each.source.path[:2])), FileKind.JPEG, FRAMING)
            assert np.array_equal(each.framed.pixels, alone.framed.pixels)


def test_pictures_are_decoded_at_the_same_time(tmp_path: Path) -> None:
    with DecoderProcesses(2, program(MEETING, tmp_path)) as both:
        pair = [both.submit(jpeg(seed), FileKind.JPEG, FRAMING) for seed in range(2)]
        assert [each.result(60).size for each in pair] == [(48, 40)] * 2
    assert len(list(tmp_path.iterdir())) == 2


def test_large_pictures_are_decoded_one_after_the_other(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("L", (4000, 3000)).save(file, "PNG")
    with DecoderProcesses(2, program(ALONE, tmp_path)) as both:
        four = [both.submit(file.getvalue(), FileKind.PNG, FRAMING) for _ in range(4)]
        assert [each.result(60).size for each in four] == [(4000, 3000)] * 4


def test_closing_ends_all_processes_also_those_that_decode(tmp_path: Path) -> None:
    both = DecoderProcesses(2, program(MEETING, tmp_path))
    waiting = both.submit(jpeg(0), FileKind.JPEG, FRAMING)
    started = until(lambda: next(tmp_path.iterdir(), None))
    assert started is not None
    both.close()
    assert isinstance(waiting.exception(60), MemoryError)
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.name), 0)


def test_the_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    script = (
        f"import os, sys; sys.path[:0] = {sys.path!r}\n"
        "from stages.decode.decoder_processes import DecoderProcesses\n"
        "decoders = DecoderProcesses(1)\n"
        "print(decoders._processes[0]._running.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    child = int(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=False).stdout)
    until(lambda: not Path(f"/proc/{child}/exe").exists())  # not even where nobody waits for its status
