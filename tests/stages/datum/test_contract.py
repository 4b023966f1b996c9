import errno
import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given, strategies as st
from python_pachyderm.proto.v2.worker.worker_pb2 import NextDatumRequest, NextDatumResponse
from python_pachyderm.proto.v2.worker.worker_pb2_grpc import WorkerServicer, add_WorkerServicer_to_server

from stages.datum import contract
from stages.datum.stage_version import refusal
from tests.pipes import piped

SECONDS = 60  # a test waits at most this long for a process; it never sleeps

STAGE = """
if __name__ == "__main__":
    from stages.datum import contract
    raise SystemExit(contract.run("stage"))

import json
import os
from stages.datum.contract import StageError
STARTS = 0
VERSION = 3
{imports}

def start(environment):
    global STARTS
    STARTS += 1
    {start}
    seen = []
    def process(datum):
        seen.append({{name: each.commit for name, each in datum.inputs.items()}})
        {process}
        (datum.out / "seen.json").write_text(json.dumps({{
            "inputs": {{name: [str(each.path), each.repo_path, each.commit] for name, each in datum.inputs.items()}},
            "seen": seen, "starts": STARTS, "stale": os.environ.get("images"),
        }}))
    return process
"""


class Worker(WorkerServicer):  # type: ignore[misc]
    """The worker's side of datum batching over real gRPC: hands out the test's replies and keeps the errors that it
    gets."""

    def __init__(self) -> None:
        self.told: queue.Queue[str] = queue.Queue()
        self.datums: queue.Queue[list[str] | None] = queue.Queue()
        self.enabled = True

    def NextDatum(self, request: NextDatumRequest, context: grpc.ServicerContext) -> NextDatumResponse:
        self.told.put(request.error)
        if not self.enabled:
            context.abort(grpc.StatusCode.UNKNOWN, "datum batching not enabled")
        env = self.datums.get()
        if env is None:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the worker ends")
        return NextDatumResponse(env=env)

    def hear(self) -> str:
        """Waits for the next call of NextDatum and returns its error."""
        return self.told.get(timeout=SECONDS)


@pytest.fixture
def worker() -> Iterator[Worker]:
    each = Worker()
    server = grpc.server(ThreadPoolExecutor(4))
    add_WorkerServicer_to_server(each, server)
    each.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield each
    each.datums.put(None)
    server.stop(None)


class Stage:
    """A stage's module in a directory of its own, and the processes that run it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pfs = directory / "pfs"
        (self.pfs / "out").mkdir(parents=True)
        self.processes: list[subprocess.Popen[str]] = []

    def write(self, imports: str = "pass", start: str = "pass", process: str = "pass") -> None:
        (self.directory / "stage.py").write_text(STAGE.format(imports=imports, start=start, process=process))

    def run(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "stage", *arguments],
            env={**os.environ, "PYTHONPATH": str(self.directory), contract.PFS_ROOT: str(self.pfs), **environment},
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def serve(self, worker: Any, **environment: str) -> subprocess.Popen[str]:
        return self.run(**{contract.WORKER_PORT: str(worker.port)}, **environment)

    def datum(self, path: str, commit: str = "c1") -> list[str]:
        return ["PATH=/bin", f"images={self.pfs}/images/{path}", f"images_COMMIT={commit}", "PACH_DATUM_ID=d"]

    def seen(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.pfs / "out" / "seen.json").read_text())
        return read


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    each = Stage(tmp_path)
    yield each
    for process in each.processes:
        process.kill()
        process.communicate()


def test_a_set_of_datums_is_processed_by_one_process_that_keeps_its_state(worker: Worker, stage: Stage) -> None:
    stage.write()
    process = stage.serve(worker, images="/pfs/images/stale")
    assert worker.hear() == ""  # ready
    env = [*stage.datum("a=b #1.jpg"), "models_COMMIT=m1", f"models={stage.pfs}/models", "GIT=/x", "GIT_COMMIT=abc"]
    worker.datums.put(env)
    assert worker.hear() == ""
    seen = stage.seen()
    assert seen["inputs"] == {
        "images": [f"{stage.pfs}/images/a=b #1.jpg", "a=b #1.jpg", "c1"],
        "models": [f"{stage.pfs}/models", "", "m1"],
    }
    assert seen["stale"] == "/pfs/images/stale"  # the process's own environment is not read or changed

    worker.datums.put(stage.datum("deep/down/.hidden", commit="c2"))
    assert worker.hear() == ""
    seen = stage.seen()
    assert seen["inputs"] == {"images": [f"{stage.pfs}/images/deep/down/.hidden", "deep/down/.hidden", "c2"]}
    assert seen["seen"] == [{"images": "c1", "models": "m1"}, {"images": "c2"}]
    assert seen["starts"] == 1

    worker.datums.put(None)
    output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "stage: images:/a=b #1.jpg models:/\n" in output
    assert errors == "stage: the connection to the Pachyderm worker was lost: the worker ends\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"imports": "import tensorflow_as_it_is"}, "ModuleNotFoundError: No module named 'tensorflow_as_it_is'"),
        ({"start": "raise StageError('IMAGE_SIZE=\\'x\\': must be a number')"}, "IMAGE_SIZE='x': must be a number"),
        ({"process": "raise SystemExit('no licence')"}, "SystemExit: no licence"),
    ],
)
def test_whatever_fails_fails_the_datum_with_its_reason_and_not_the_process(
    body: dict[str, str], said: str, worker: Worker, stage: Stage
) -> None:
    stage.write(**body)
    process = stage.serve(worker)
    assert worker.hear() == ""  # ready comes before the import
    for _ in range(2):
        worker.datums.put(stage.datum("a"))
        assert worker.hear() == said
    assert process.poll() is None


@pytest.mark.parametrize(
    ("deployed", "why"),
    [
        ("stage-2", "an earlier version of lookalike, for stage-2, and this code is stage-3: run `lookalike upgrade`"),
        ("stage-4", "a later version of lookalike, for stage-4, and this code is stage-3: install the lookalike"),
        ("stage-3", ""),
        ("mine-2", ""),
        ("stage-of-mine", ""),
    ],
)
def test_another_version_of_a_stage_is_refused_and_a_users_own_is_not(deployed: str, why: str) -> None:
    told = refusal("stage", 3, deployed)
    assert why in told and bool(told) == bool(why)


@pytest.mark.parametrize("deployed", ["stage-2", "stage-3"])
def test_no_datum_of_a_pipeline_for_another_version_is_processed(deployed: str, worker: Worker, stage: Stage) -> None:
    stage.write()
    worker.datums.put(stage.datum("a"))
    stage.serve(worker, LOOKALIKE_STAGE=deployed)
    assert worker.hear() == ""
    assert worker.hear() == refusal("stage", 3, deployed)
    assert (stage.pfs / "out" / "seen.json").exists() == (deployed == "stage-3")


def test_after_a_failed_datum_the_next_gets_a_clean_start(worker: Worker, stage: Stage) -> None:
    stage.write(process="if 'bad' in datum.inputs['images'].repo_path: raise ValueError('no\\nuse \\udcff')")
    process = stage.serve(worker)
    assert worker.hear() == ""
    told = []
    for path in ("good", "bad", "good"):
        worker.datums.put(stage.datum(path))
        told.append(worker.hear())
    assert told == ["", "ValueError: no\nuse \\udcff", ""]
    assert stage.seen()["starts"] == 2
    assert stage.seen()["seen"] == [{"images": "c1"}]
    process.kill()
    assert "Traceback" in process.communicate()[0]  # for the logs


def test_a_process_restarted_after_a_failed_datum_continues(worker: Worker, stage: Stage) -> None:
    """As in Pachyderm, which kills the process that waits for the next datum and starts it again."""
    stage.write(process="if 'bad' in datum.inputs['images'].repo_path: raise ValueError('no use')")
    process = stage.serve(worker)
    assert worker.hear() == ""
    worker.datums.put(stage.datum("bad"))
    assert worker.hear() == "ValueError: no use"
    process.kill()
    process.wait()
    worker.datums.put(None)  # frees the call of the dead process
    stage.serve(worker)
    assert worker.hear() == ""
    worker.datums.put(stage.datum("good"))
    assert worker.hear() == ""
    assert stage.seen()["inputs"]["images"][1] == "good"


def test_a_pipeline_without_datum_batching_gets_a_clear_error(worker: Worker, stage: Stage) -> None:
    stage.write()
    worker.enabled = False
    process = stage.serve(worker)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert errors == 'stage: this pipeline\'s spec lacks "datum_batching": true in its transform\n'


def test_a_stage_runs_on_plain_directories(stage: Stage, tmp_path: Path) -> None:
    stage.write()
    (tmp_path / "root" / "library" / "ab").mkdir(parents=True)
    (tmp_path / "backbone").mkdir()
    process = stage.run(
        *("--input", f"pictures={tmp_path}/root::library/ab", "--input", "models=backbone", "--out", "made/out"),
        LOOKALIKE_STAGE="stage-2",  # which matters for pipelines alone
    )
    output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert output == "stage: pictures:/library/ab models:/backbone\n"
    assert json.loads((tmp_path / "made" / "out" / "seen.json").read_text())["inputs"] == {
        "pictures": [f"{tmp_path}/root/library/ab", "library/ab", ""],
        "models": [f"{tmp_path}/backbone", "backbone", ""],
    }


def test_one_process_runs_any_number_of_datums_on_plain_directories(stage: Stage, tmp_path: Path) -> None:
    stage.write()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    datums = [
        {"inputs": {"images": {"path": name, "repo_path": f"all/{name}", "commit": "c1"}}, "out": f"out/{name}"}
        for name in ("a", "b")
    ]
    (tmp_path / "datums").write_text("".join(json.dumps(each) + "\n" for each in datums))
    process = stage.run("--datums", "datums")
    assert process.communicate(timeout=SECONDS) == ("stage: images:/all/a\nstage: images:/all/b\n", "")
    assert process.returncode == 0
    last = json.loads((tmp_path / "out" / "b" / "seen.json").read_text())
    assert last["inputs"] == {"images": [f"{tmp_path}/b", "all/b", "c1"]}
    assert last["starts"] == 1
    assert len(last["seen"]) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 of datums does not describe a datum: JSONDecodeError"),
        ('{"inputs": {}}', "line 2 of datums does not describe a datum: KeyError: 'out'"),
        ('{"inputs": {"a": 1}, "out": "o"}', "line 2 of datums does not describe a datum: TypeError"),
        (
            '{"inputs": {"a": {"path": "missing", "repo_path": "", "commit": ""}}, "out": "o"}',
            "line 2 of datums: no file or directory at ",
        ),
    ],
)
def test_a_wrong_list_of_datums_is_refused_before_the_first_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    good = {"inputs": {"images": {"path": ".", "repo_path": "", "commit": ""}}, "out": "out"}
    (tmp_path / "datums").write_text(f"{json.dumps(good)}\n{line}\n")
    assert contract.run("stage", ["--datums", "datums"]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(f"stage: {said}")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--out", "o"], ["--input", "a=."], ["--datums", "d", "--out", "o"]])
def test_datums_come_from_a_list_or_from_the_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.delenv(contract.WORKER_PORT, raising=False)
    assert contract.run("stages.preprocess", arguments) == 2
    said = capsys.readouterr().err
    assert "usage: python -m stages.preprocess" in said and "give --input and --out, or --datums alone" in said


@pytest.mark.parametrize(
    ("body", "arguments", "said"),
    [
        (
            {"process": "raise StageError('two models: push one')"},
            ["--input", "a=.", "--out", "o"],
            "two models: push one",
        ),
        ({"imports": "1 / 0"}, ["--input", "a=.", "--out", "o"], "ZeroDivisionError: division by zero"),
        ({}, ["--input", "a=missing", "--out", "o"], "--input a: no file or directory at "),
        ({}, ["--input", "a", "--out", "o"], "--input 'a' is not NAME=PATH"),
        ({}, ["--input", "a=.", "--input", "a=.", "--out", "o"], "--input a is given twice"),
    ],
)
def test_on_plain_directories_a_failure_is_one_line(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: dict[str, str],
    arguments: list[str],
    said: str,
) -> None:
    stage.write(**body)
    monkeypatch.chdir(stage.directory)
    monkeypatch.syspath_prepend(stage.directory)
    monkeypatch.delitem(sys.modules, "stage", raising=False)
    assert contract.run("stage", arguments) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"stage: {said}")
    assert errors.count("\n") == 1
    sys.modules.pop("stage", None)


def test_nothing_that_may_fail_is_imported_before_the_first_call() -> None:
    code = (
        "import sys, stages.datum.contract; print(sorted({'numpy', 'PIL', 'tensorflow', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_named_pipe_is_spooled_whole_and_once(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    pipe = piped(tmp_path / "backbone.keras", content)
    into = tmp_path / "scratch"
    into.mkdir()
    spooled = contract.spool(pipe, into)
    assert spooled.read_bytes() == content
    assert (spooled.parent.parent, spooled.name) == (into, "backbone.keras")
    assert contract.spool(spooled, into) == spooled


def test_a_file_that_is_passed_on_is_a_link_under_pachyderm_and_stays_on_plain_directories(tmp_path: Path) -> None:
    file = tmp_path / "in" / "file"
    file.parent.mkdir()
    file.write_bytes(b"content")
    env = [f"in={tmp_path}/in/file", "in_COMMIT=c"]
    contract.datum_from(env, tmp_path).pass_on(file, tmp_path / "out" / "a" / "file")
    assert (tmp_path / "out" / "a" / "file").readlink() == file
    for _ in range(2):  # a second run into the same directory is fine
        contract.Datum({}, tmp_path / "plain").pass_on(file, tmp_path / "plain" / "a" / "file")
    file.unlink()
    assert (tmp_path / "plain" / "a" / "file").read_bytes() == b"content"


def test_a_file_that_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As to another disk."""
    (tmp_path / "file").write_bytes(b"content")

    def fails(*_: object) -> None:
        raise OSError(errno.EXDEV, "another disk")

    monkeypatch.setattr("os.link", fails)
    contract.Datum({}, tmp_path).pass_on(tmp_path / "file", tmp_path / "copy")
    (tmp_path / "file").unlink()
    assert (tmp_path / "copy").read_bytes() == b"content"


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True).filter(lambda name: not name.endswith("_COMMIT"))
PATHS = st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="/"), min_size=1)).map(
    lambda parts: "/".join(part for part in parts if part not in (".", ".."))
)


@given(st.dictionaries(NAMES, st.tuples(PATHS, st.uuids().map(lambda id: id.hex)), min_size=1))
def test_every_input_of_the_reply_is_found_for_any_path(inputs: dict[str, tuple[str, str]]) -> None:
    env = [f"{name}=/stale" for name in inputs]
    for name, (path, commit) in inputs.items():
        env += [f"{name}=/pfs/{name}/{path}".rstrip("/"), f"{name}_COMMIT={commit}"]
    datum = contract.datum_from(env, Path("/pfs"))
    assert {name: (each.repo_path, each.commit) for name, each in datum.inputs.items()} == inputs
    assert datum.out == Path("/pfs/out")


@given(st.text(st.characters(exclude_categories=())), st.sampled_from([contract.StageError, ValueError, KeyError]))
def test_a_reason_is_never_empty_or_too_long_and_can_be_sent(text: str, kind: type[Exception]) -> None:
    for failure in (kind(text), kind(text * 5000)):
        said = contract.reason(failure)
        assert said
        assert NextDatumRequest(error=said).error == said
        assert len(said) <= contract.LONGEST_REASON
