"""Stages that are forked: they see what a stage that is started would see, and end with what asked for them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from pipelines.specifications import pipeline_specs
from stages.decode import decoder_processes
from tests import forked_python, forked_stages
from tests.conditions import until
from tests.e2e.world import World
from tests.servers import StartPachd

SEARCH = ("-P", "-m", "stages.search")
FORKED = os.fsencode(forked_python.__file__)


def ran(python: str | Path, arguments: Sequence[str], directory: Path) -> tuple[int, bytes, bytes]:
    done = subprocess.run([python, *arguments], capture_output=True, cwd=directory)
    return done.returncode, done.stdout, done.stderr


def asks(pid: int) -> bool:
    """Whether a process has asked for a stage, and waits for its end."""
    return FORKED in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


@contextmanager
def decoder(**variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A decoder that waits for pictures."""
    command = [str(forked_stages.python()), *decoder_processes._program()[1:]]
    environment = {**os.environ, "LOOKALIKE_DECODING": "0", **variables}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stdout.read(4)
        yield process
        process.kill()


def forked_by(process: "subprocess.Popen[bytes]") -> int:
    """The number of the process that has the stdin of this one as its own."""
    stdin = Path(f"/proc/{process.pid}/fd/0").readlink()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if int(each.name) != process.pid and (each / "fd/0").readlink() == stdin:
                return int(each.name)
        except OSError:
            continue
    raise AssertionError("it was not forked")


@pytest.mark.parametrize(
    "arguments",
    [(*SEARCH, "--datums", "none.jsonl"), (*SEARCH, "--input", "index=."), ("-c", "import sys; print(sys.path)")],
)
def test_a_forked_stage_says_what_the_program_says(arguments: Sequence[str], tmp_path: Path) -> None:
    assert ran(forked_stages.python(), arguments, tmp_path) == ran(sys.executable, arguments, tmp_path)


def test_its_end_is_the_end_of_what_asked_for_it() -> None:
    with decoder() as process:
        assert asks(process.pid)
        os.kill(forked_by(process), signal.SIGSEGV)
        assert process.wait(30) == -signal.SIGSEGV
    with decoder() as process:
        pid = forked_by(process)
        process.kill()
        until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize("variable", ["PYTHONPATH", "OMP_NUM_THREADS"])
def test_with_other_variables_it_is_started(variable: str) -> None:
    before = os.environ.get(variable)
    with decoder(**{variable: f"/{os.pathsep}{before}" if variable == "PYTHONPATH" else "2"}) as process:
        assert not asks(process.pid)


def test_a_worker_forks_its_stages(start_pachd: StartPachd, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.png")
    (tmp_path / "home").mkdir()
    world = World(start_pachd, tmp_path / "home" / "root", tmp_path / "files")
    world.client.create_repo("images")
    world.deploy(each for each in pipeline_specs.load() if each.name == "preprocess")
    world.settle(world.add({"red.png": (tmp_path / "red.png").read_bytes()}))
    marks = [b"stages.preprocess", b"from stages.decode.decoder_processes import main; main()"]
    root = os.fsencode(tmp_path)
    asking = [each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists()]
    assert all(any(FORKED in each and mark in each for each in asking) for mark in marks), root
