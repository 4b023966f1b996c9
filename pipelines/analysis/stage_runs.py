"""Stages run on this machine, on plain directories, as one process for all datums. Knows neither Pachyderm nor the
files that the stages exchange."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pipelines.errors import LookalikeError
from pipelines.library import stage_processes
from stages.datum.file_cache import FileCache, default_place


@dataclass(frozen=True, slots=True)
class StageInput:
    """An input of a datum: a file or directory on disk, its path in the repo ("" for all of it), and the id of the
    commit. Datums whose input has the same path and commit share what the stage has read of it; "" is never shared."""

    path: Path
    repo_path: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class StageDatum:
    """A datum: its inputs by name, and the directory for its output, which other datums may share."""

    inputs: Mapping[str, StageInput]
    out: Path


@contextmanager
def kept_files(store: FileCache | None = None) -> Iterator[tuple[FileCache, Path]]:
    """The files of servers that are kept on this machine, and a directory on the same disk until the end of the block.
    Then the files that were not used for the longest time go, if there are too many."""
    store = store or FileCache(default_place())
    with store.scratch() as scratch:
        yield store, scratch
    store.trim()


def run(
    stage: str,
    works: Sequence[StageDatum],
    environment: Mapping[str, str],
    report: Callable[[int], None] = lambda _: None,
) -> None:
    """Runs the stage on each datum in turn, with the variables of a specification; `report` hears of each number of
    datums that are done. Raises LookalikeError with the stage's reason if one fails; its output may be incomplete."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        datums = Path(scratch, "datums")
        datums.write_text("".join(f"{_line(work)}\n" for work in works), encoding="utf-8")
        command = stage_processes.command(stage, "--datums", str(datums))
        variables = stage_processes.environment(environment)
        with Path(scratch, "errors").open("w+b") as errors:
            process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=errors)
            try:
                assert process.stdout is not None
                begun = _count(process.stdout, f"{stage}: ", report)
                status = process.wait()
            except BaseException:
                process.kill()
                process.wait()
                raise
            if status:
                raise LookalikeError(_last_line(errors) or f"the stage {stage} ended with status {status}")
    report(len(works) - max(begun - 1, 0))


def run_pipeline(
    name: str, works: Sequence[StageDatum], environment: Mapping[str, str], report: Callable[[int], None]
) -> None:
    """Runs the stage of one of our pipelines with its variables, see `run`."""
    if environment.get("BACKEND") == "cuml":  # answers do not depend on it, and the process sees no GPU
        environment = {**environment, "BACKEND": "faiss"}
    run(name.removesuffix("-queries").replace("-", "_"), works, environment, report)


def _line(work: StageDatum) -> str:
    inputs = {name: asdict(given) | {"path": str(given.path)} for name, given in work.inputs.items()}
    return json.dumps({"inputs": inputs, "out": str(work.out)})


def _count(output: IO[bytes], announcement: str, report: Callable[[int], None]) -> int:
    """Reads the stage's output to its end; returns the number of datums that have begun. A stage announces each with a
    line of its inputs' paths, when the one before it is done."""
    begun = 0
    for line in output:
        if line.startswith(announcement.encode()) and b":/" in line:
            report(min(begun, 1))
            begun += 1
    return begun


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    said = [line for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    return said[-1] if said else ""
