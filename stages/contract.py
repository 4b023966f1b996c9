"""How a stage meets Pachyderm: the datum-batching protocol, and the same stage run once on plain directories.

The only module that knows the protocol; it knows no stage. It imports the standard library and the generated gRPC stub
only, because nothing that can fail may come before the first NextDatum: a process that dies earlier makes Pachyderm
restart its job for ever, and, after a failed datum, record the rest of the datum set as done with empty output.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import shutil
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from python_pachyderm.proto.v2.worker.worker_pb2 import NextDatumRequest
from python_pachyderm.proto.v2.worker.worker_pb2_grpc import WorkerStub

WORKER_PORT = "PPS_WORKER_GRPC_PORT"
PFS_ROOT = "LOCALPACHD_PFS"
LONGEST_REASON = 4000
SECONDS_TO_CONNECT = 60

# The worker listens on this machine: a proxy named in the environment must not be asked for it.
_CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 20 * 2**20))


class StageError(Exception):
    """A reason meant for the user: said as it is, without type or traceback."""


@dataclass(frozen=True)
class Input:
    """One input of one datum.

    name: the input's name in the spec. path: absolute path on disk of the datum's file or directory. repo_path: path
    within the repo without leading or trailing slash, "" for the glob "/". commit: id of the input's commit, "" when
    running on plain directories.
    """

    name: str
    path: Path
    repo_path: str
    commit: str


@dataclass(frozen=True)
class Datum:
    """The inputs of one datum by name (an outer join may lack some) and the directory to write the outputs to."""

    inputs: Mapping[str, Input]
    out: Path


Process = Callable[[Datum], None]


def run(module: str, arguments: Sequence[str] | None = None) -> int:
    """Runs the stage in `module` and returns the exit status of the process.

    The module has `start(environment) -> Callable[[Datum], None]`; it is imported here, by name, so that a failing
    import has somewhere to be reported. With arguments (default: the command line's) it runs one datum on plain
    directories; without, it serves the Pachyderm worker at PPS_WORKER_GRPC_PORT until that ends the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # File names may hold what the log's encoding cannot; and a log is wanted while it happens.
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    given = list(sys.argv[1:] if arguments is None else arguments)
    port = os.environ.get(WORKER_PORT)
    if port and not given:
        return _serve(module, port)
    return _run_plain(module, given)


def spool(path: Path, into: Path) -> Path:
    """Returns a path with the content of `path` that can be opened often and seeked in.

    A named pipe (a file of a lazy input) is copied once, to its end, to a new file in the directory `into`, which
    belongs to the caller; its suffix is kept. A regular file is returned as it is. A pipe must not be opened
    again: a second or partial read makes Pachyderm retry the datum.
    """
    if not stat.S_ISFIFO(path.stat().st_mode):
        return path
    with (
        path.open("rb") as source,
        tempfile.NamedTemporaryFile(dir=into, prefix="spool-", suffix=path.suffix, delete=False) as target,
    ):
        shutil.copyfileobj(source, target, 1 << 20)
    return Path(target.name)


def datum_from(env: Iterable[str], root: Path) -> Datum:
    """The datum described by a NextDatum reply's `env` list of KEY=value.

    An input is a key X with a sibling X_COMMIT whose value lies in <root>/X. Later entries win over earlier ones, as
    in a process environment: the worker puts the datum's own after everything it inherited.
    """
    values = dict(entry.split("=", 1) for entry in env if "=" in entry)
    inputs = {}
    for name, value in values.items():
        commit = values.get(f"{name}_COMMIT")
        home = root / name
        path = Path(value)
        if commit is None or not path.is_relative_to(home):
            continue
        below = path.relative_to(home)
        inputs[name] = Input(name, path, "/".join(below.parts), commit)
    if not inputs:
        raise StageError(f"the worker named no input below {root}: is {PFS_ROOT} set to where the inputs are?")
    return Datum(inputs, root / "out")


def _serve(module: str, port: str) -> int:
    """Asks for datums until the worker ends this process, as it does at the end of each datum set."""
    root = Path(os.environ.get(PFS_ROOT) or "/pfs")
    process: Process | None = None
    error = ""
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=_CHANNEL_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=SECONDS_TO_CONNECT)
        except grpc.FutureTimeoutError:
            return _complain(module, f"no Pachyderm worker answers at 127.0.0.1:{port} ({WORKER_PORT})")
        stub = WorkerStub(channel)
        while True:
            try:
                reply = stub.NextDatum(NextDatumRequest(error=error))
            except grpc.RpcError as failure:
                return _complain(module, _explain(failure))
            error = ""
            try:
                datum = datum_from(reply.env, root)
                _announce(module, datum)
                if process is None:
                    process = _start(module)
                process(datum)
            except (Exception, SystemExit) as failure:
                traceback.print_exc(file=sys.stdout)
                error = reason(failure)
                # Pachyderm restarts the process after a failed datum; a worker that goes on gets the same clean start.
                process = None


def _start(module: str) -> Process:
    """What is imported stays for good. To look for garbage among it, again and again while it grows and with every
    later round, takes a fifth of the time until TensorFlow has its first picture."""
    gc.disable()
    try:
        imported = importlib.import_module(module)
        gc.freeze()
    finally:
        gc.enable()
    process: Process = imported.start(os.environ)
    return process


def reason(failure: BaseException) -> str:
    """The text that stands for an exception: a StageError's own, else "<Type>: <message>".

    Never empty (an empty text would mean success), never more than LONGEST_REASON characters, always valid UTF-8.
    """
    text = str(failure).strip()
    if not isinstance(failure, StageError) or not text:
        text = f"{type(failure).__name__}: {text}".removesuffix(": ")
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) > LONGEST_REASON:
        text = text[: LONGEST_REASON // 2 - 3] + " ... " + text[-LONGEST_REASON // 2 + 3 :]
    return text


def _explain(failure: grpc.RpcError) -> str:
    details = failure.details() if isinstance(failure, grpc.Call) else str(failure)
    if "datum batching not enabled" in str(details):
        return 'this pipeline\'s spec lacks "datum_batching": true in its transform'
    return f"the Pachyderm worker went away: {details}"


def _announce(module: str, datum: Datum) -> None:
    """Prints what is worked on: the logs of batched user code carry no datum id."""
    paths = " ".join(f"{each.name}:/{each.repo_path}" for each in datum.inputs.values())
    print(f"{_stage(module)}: {paths}")


def _run_plain(module: str, arguments: Sequence[str]) -> int:
    try:
        datum = _datum_from_arguments(module, arguments)
        _announce(module, datum)
        _start(module)(datum)
    except (Exception, SystemExit) as failure:
        if isinstance(failure, SystemExit) and isinstance(failure.code, int | None):
            return failure.code or 0  # argparse has said what it had to say
        return _complain(module, reason(failure))
    except KeyboardInterrupt:
        return _complain(module, "interrupted", 130)
    return 0


def _datum_from_arguments(module: str, arguments: Sequence[str]) -> Datum:
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description="Runs this stage once, on plain directories. In a Pachyderm worker it takes no arguments.",
    )
    parser.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="NAME=PATH",
        help="one input of the datum; NAME=ROOT::PATH/BELOW says which part of the path is the path in the repo",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where the outputs go; made if missing")
    given = parser.parse_args(arguments)
    inputs: dict[str, Input] = {}
    for text in given.input:
        each = _input_from_argument(text)
        if each.name in inputs:
            raise StageError(f"--input {each.name} is given twice; a datum has one of each")
        inputs[each.name] = each
    given.out.mkdir(parents=True, exist_ok=True)
    return Datum(inputs, given.out.absolute())


def _input_from_argument(text: str) -> Input:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise StageError(f"--input {text!r} is not NAME=PATH")
    path = Path(place).absolute()
    repo_path = path.name
    root, separator, below = place.partition("::")
    if separator and not path.exists():  # a real path with "::" in its name is taken as it is
        path = Path(root, below).absolute()
        repo_path = below.strip("/")
    if not path.exists():
        raise StageError(f"--input {name}: there is nothing at {path}")
    return Input(name, path, repo_path, "")


def _complain(module: str, text: str, status: int = 1) -> int:
    print(f"{_stage(module)}: {' '.join(text.split())}", file=sys.stderr)
    return status


def _stage(module: str) -> str:
    return module.rpartition(".")[2]
