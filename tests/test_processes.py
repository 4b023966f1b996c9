"""Tests in several processes: what these report, and what happens when one of them dies."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

CONFTEST = """
import itertools, pytest
from tests.processes import Processes, shared

def pytest_configure(config):
    name = lambda item: item.path.stem.split("_")[1]
    grouped = lambda items: [list(group) for _, group in itertools.groupby(items, name)]
    config.pluginmanager.register(Processes(2, grouped))

@pytest.fixture(scope="session")
def server(tmp_path_factory):
    name = tmp_path_factory.getbasetemp().name
    (shared(tmp_path_factory) / f"{name}.begun").touch()
    yield
    (shared(tmp_path_factory) / f"{name}.ended").touch()
"""
GOOD = """
import time, warnings

def test_one(server, tmp_path, tmp_path_factory):
    warnings.warn("a warning")
    (tmp_path_factory.getbasetemp().parent / "good").touch()

def test_two(server):
    print("said by test two")
    raise ValueError("a reason")
"""
DEADLY = """
import os, signal, time

def test_before():
    pass

def test_kill(tmp_path_factory):
    while not (tmp_path_factory.getbasetemp().parent / "good").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

def test_after():
    pass
"""
FAILING = """
import time

def test_fail(server, tmp_path_factory):
    while len([*tmp_path_factory.getbasetemp().parent.glob("*.begun")]) < 2:
        time.sleep(0.01)
    raise ValueError("a reason")
"""
ALONE = """
import time

def test_alone(tmp_path_factory):
    while not list(tmp_path_factory.getbasetemp().parent.glob("*.ended")):
        time.sleep(0.01)
"""
ENDLESS = """
import threading
from tests import processes

processes.ENDING = 1.0

def test_leaves_a_thread():
    threading.Thread(target=threading.Event().wait, name="endless").start()
"""
TEARDOWN = """
import pytest

@pytest.fixture(scope="session")
def stubborn():
    yield
    raise RuntimeError("does not end")

def test_last(stubborn):
    pass
"""


def _run(directory: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    home = directory / "suite"
    home.mkdir()
    (home / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (home / f"test_{name}.py").write_text(text)
    options = ("-p", "no:cacheprovider", "--basetemp", str(directory / "run"), *options)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(home), str(home), *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=directory,
    )


def test_results_are_reported_as_if_the_collector_had_run_the_tests(tmp_path: Path) -> None:
    done = _run(tmp_path, good=GOOD, more="def test_more(): pass", last=TEARDOWN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"= 1 failed, 3 passed, 1 warning, 1 error in ", done.stdout), done.stdout
    assert "said by test two" in done.stdout and "ValueError: a reason" in done.stdout
    assert "UserWarning: a warning" in done.stdout
    assert "RuntimeError: does not end" in done.stdout
    assert len(list((tmp_path / "run").glob("*.ended"))) == 1


def test_a_process_that_dies_fails_its_test_and_another_runs_the_rest(tmp_path: Path) -> None:
    done = _run(tmp_path, "-v", good=GOOD, deadly=DEADLY)
    assert done.returncode == 1
    assert "the process of this test ended with status -9" in done.stdout
    assert re.search(r"^FAILED .*::test_kill", done.stdout, re.MULTILINE), done.stdout
    for passed in ("test_one", "test_before", "test_after"):
        assert re.search(rf"{passed} .*PASSED", done.stdout), done.stdout


def test_the_first_failure_ends_all_processes_and_their_servers(tmp_path: Path) -> None:
    done = _run(tmp_path, "-x", failing=FAILING, waiting="import time\ndef test_wait(server): time.sleep(60)")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout + done.stderr
    assert len(list((tmp_path / "run").glob("*.ended"))) == 2


def test_nothing_is_run_where_collection_fails(tmp_path: Path) -> None:
    done = _run(tmp_path, good=GOOD, bad="import no_such_module")
    assert done.returncode == 2 and "1 error during collection" in done.stdout


def test_fixtures_of_several_files_end_with_their_group(tmp_path: Path) -> None:
    done = _run(tmp_path, "--timeout", "30", group_one=GOOD, group_two=GOOD, other=ALONE)
    assert re.search("= 2 failed, 3 passed", done.stdout), done.stdout
    assert len(list((tmp_path / "run").glob("*.ended"))) == 1


def test_a_process_that_does_not_end_shows_what_it_waits_for(tmp_path: Path) -> None:
    done = _run(tmp_path, endless=ENDLESS)
    assert done.returncode == 1
    assert "the process of this test ended with status 1, after its last test" in done.stdout
    assert re.search(r"^FAILED .*::test_leaves_a_thread", done.stdout, re.MULTILINE), done.stdout
    assert "in _shutdown" in done.stderr, done.stderr
