"""The files that a command's code consists of: the changes that are seen, and the code that cannot be watched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localpachd.worker.machine import code_files
from localpachd.worker.tasks import Task
from localpachd.worker.workplace import NotReusable

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

Look = Callable[..., str]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """The state of the code of a command, with PYTHONPATH=tmp_path."""

    def state(*cmd: str, working_dir: str = "", stdin: tuple[str, ...] = ()) -> str:
        env = {"PATH": PATH, "PYTHONPATH": str(tmp_path)}
        return code_files.code_state(Task(cmd, stdin=stdin, working_dir=working_dir), env)

    return state


@pytest.fixture
def package(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    (made / "inner").mkdir(parents=True)
    for name in ("__init__.py", "main.py", "inner/data.bin"):
        (made / name).write_text("one")
    return made


@pytest.mark.parametrize("module", ["mine", "mine.main", "mine.inner.missing"])
@pytest.mark.parametrize("options", [(), ("-u", "-X", "dev", "-W", "error")])
def test_each_file_of_a_package_counts(look: Look, package: Path, module: str, options: tuple[str, ...]) -> None:
    command = ("python3", *options, "-m", module, "argument")
    before = look(*command)
    assert look(*command) == before
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "main.pyc").write_text("x")
    assert look(*command) == before
    states = {before}
    for name, text in (("main.py", "two!"), ("inner/data.bin", "three"), ("inner/new.py", "")):
        (package / name).write_text(text)
        states.add(look(*command))
    (package / "main.py").unlink()
    states.add(look(*command))
    assert len(states) == 5


def test_the_same_text_in_another_file_counts(look: Look, package: Path) -> None:
    before = look("python3", "-m", "mine")
    other = package / "other"
    other.write_text("one")
    os.utime(other, ns=((package / "main.py").stat().st_mtime_ns,) * 2)
    other.replace(package / "main.py")
    assert look("python3", "-m", "mine") != before


def test_a_module_of_one_file(look: Look, tmp_path: Path) -> None:
    (tmp_path / "single.py").touch()
    before = look("python3", "-msingle")
    (tmp_path / "beside.py").touch()
    assert look("python3", "-msingle") == before
    (tmp_path / "single.py").write_text("new")
    assert look("python3", "-msingle") != before


def test_modules_beside_a_script_count(look: Look, package: Path) -> None:
    command = ("python3", "-u", str(package / "main.py"), "-m", "nothing")
    before = look(*command)
    (package / "inner" / "helper.py").touch()
    assert look(*command) != before


def test_files_among_the_arguments_count(look: Look, tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.touch()
    for command in (("sh", "-e", str(settings)), ("python3", "-c", "pass", str(settings))):
        before = look(*command)
        settings.write_text(settings.read_text() + "x")
        assert look(*command) != before
    before = look("sh", "settings", working_dir=str(tmp_path))
    settings.write_text("")
    assert look("sh", "settings", working_dir=str(tmp_path)) != before


def test_our_own_stages_are_found_without_a_path(look: Look) -> None:
    assert look("python3", "-m", "stages.features") == look("python3", "-m", "stages.index")


def test_a_long_program_is_no_file(look: Look) -> None:
    assert look("python3", "-c", "x = 1\n" * 10_000)


@pytest.mark.parametrize(
    "command",
    [
        ("python3", "/pfs/code/main.py"),
        ("sh", "-c", "exec python3 /pfs/in/a.py"),
        ("sh", "-c", "/app/run --model=/pfs/models"),
    ],
)
def test_code_and_settings_that_are_inputs(look: Look, command: tuple[str, ...]) -> None:
    with pytest.raises(NotReusable, match="names files of its inputs"):
        look(*command)
    with pytest.raises(NotReusable, match="names files of its inputs"):
        look("sh", stdin=(command[-1],))


def test_the_output_may_be_named(look: Look) -> None:
    for text in ("/pfs/out", "/pfs/out/x", "cp /data/pfs/in /pfs/", "/pfs"):
        assert look("sh", "-c", text)


def test_a_working_directory_in_pfs(look: Look) -> None:
    with pytest.raises(NotReusable, match="names files of its inputs"):
        look("sh", working_dir="/pfs/in")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("python3", "-m", "nowhere.to.be.found"), "the module nowhere.to.be.found was not found"),
        (("python3", "-m", ""), "its command names no module"),
        (("python3", "-m", "a b"), "the module a b was not found"),
        (("no-such-program",), "executable file not found"),
        ((), "no command specified"),
    ],
)
def test_code_that_cannot_be_found(look: Look, command: tuple[str, ...], why: str) -> None:
    with pytest.raises(NotReusable, match=why):
        look(*command)


def test_code_that_is_too_much_to_watch(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_files, "_MOST", 3)
    for number in range(3):
        (tmp_path / f"{number}.py").touch()
    with pytest.raises(NotReusable, match="its code has more than 3 files"):
        look("python3", str(tmp_path / "0.py"))
