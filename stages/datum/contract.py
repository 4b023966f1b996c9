"""The contract between a stage and Pachyderm: the datum-batching protocol, or runs on plain directories.

The only module that knows the protocol; it knows no stage. It imports only the standard library and gRPC, since nothing
that can fail may come before the first NextDatum: if a process dies earlier, Pachyderm restarts its
job for ever and, after a failed datum, records the rest of the datum set as done with empty output.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import json
import os
import shutil
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import grpc

from stages.datum import datum_messages
from stages.datum.stage_version import STAGE, refusal

WORKER_PORT = "PPS_WORKER_GRPC_PORT"
PFS_ROOT = "LOCALPACHD_PFS"
LONGEST_REASON = 4000
SECONDS_TO_CONNECT = 60

# The worker listens on this machine, so connect without any proxy that the environment names.
_CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 20 * 2**20))


class StageError(Exception):
    """A failure that the user can act on; its text is shown as it is, without a type or a traceback."""


@dataclass(frozen=True)
class DatumInput:
    """One input of one datum.

    name: the input's name in the spec. path: the absolute path on disk of the datum's file or directory. repo_path: its
    path in the repo without leading or trailing slash, "" for the glob "/". commit: the id of the input's commit, "" on
    plain directories.
    """

    name: str
    path: Path
    repo_path: str
    commit: str

    @property
    def directory(self) -> Path:
        """What holds the datum's files: of a group, and of a file, the path is only one of them."""
        return self.path if self.path.is_dir() else self.path.parent


@dataclass(frozen=True)
class Datum:
    """The inputs of one datum by name (an outer join may lack some) and the directory for its output.

    by_reference: whether Pachyderm takes the output. It makes a link in `out` to a file of an input that it has not
    downloaded (`lazy`, `empty_files`) a copy by reference, of which no byte is moved.
    """

    inputs: Mapping[str, DatumInput]
    out: Path
    by_reference: bool = False

    def require(self, needs: str, *names: str) -> None:
        """Raises StageError, with what the stage needs, if an input of these is missing."""
        for name in names:
            if name not in self.inputs:
                raise StageError(f"the input {name} is missing: {needs}")

    def pass_on(self, file: Path, to: Path) -> None:
        """Makes a file of an input a file of the output, at a path in `out`, without reading it where that is possible.
        On plain directories both may be one file on the disk."""
        to.parent.mkdir(parents=True, exist_ok=True)
        to.unlink(missing_ok=True)  # of an earlier run into the same directory
        if self.by_reference:
            to.symlink_to(file)
            return
        try:
            os.link(file, to)
        except OSError:  # another disk, or one without links
            shutil.copyfile(file, to)


DatumHandler = Callable[[Datum], None]


def run(module: str, arguments: Sequence[str] | None = None) -> int:
    """Runs the stage in `module` and returns the exit status of the process.

    The module has `start(environment) -> Callable[[Datum], None]` and `VERSION`, a number, and is imported here, by
    name, so that a failing import can be reported. With arguments (default: the command line's) this runs datums on
    plain directories; without, it processes datums of the Pachyderm worker at PPS_WORKER_GRPC_PORT until the worker
    ends the process, but none of a pipeline for another version of the stage: its output would be of two.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # File names may hold characters that the log's encoding lacks, and each line should appear at once.
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    given = list(sys.argv[1:] if arguments is None else arguments)
    port = os.environ.get(WORKER_PORT)
    if port and not given:
        return _serve(module, port)
    return _run_plain(module, given)


def spool(path: Path, into: Path) -> Path:
    """A path with the content of `path` that can be opened repeatedly and is seekable.

    A named pipe (a file of a lazy input) is copied, to its end, to a new file with the same name, in a directory of its
    own below `into`, which belongs to the caller. A regular file is returned as it is. A pipe must not be opened again:
    a second or a partial read makes Pachyderm retry the datum.
    """
    if not stat.S_ISFIFO(path.stat().st_mode):
        return path
    copy = Path(tempfile.mkdtemp(prefix="spool-", dir=into), path.name)
    with path.open("rb") as source, copy.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return copy


def datum_from(env: Iterable[str], root: Path) -> Datum:
    """The datum described by a NextDatum reply's `env` list of KEY=value.

    An input is a key X that has a sibling X_COMMIT and whose value lies in <root>/X. Later entries override earlier
    ones: the worker appends the datum's own to everything that it inherited.
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
        inputs[name] = DatumInput(name, path, "/".join(below.parts), commit)
    if not inputs:
        raise StageError(f"the worker named no input below {root}: is {PFS_ROOT} set to the directory of the inputs?")
    return Datum(inputs, root / "out", by_reference=True)


def _serve(module: str, port: str) -> int:
    """Processes datum after datum until the worker ends this process, as it does after each datum set."""
    root = Path(os.environ.get(PFS_ROOT) or "/pfs")
    process: DatumHandler | None = None
    error = ""
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=_CHANNEL_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=SECONDS_TO_CONNECT)
        except grpc.FutureTimeoutError:
            return _complain(module, f"no Pachyderm worker answers at 127.0.0.1:{port} ({WORKER_PORT})")
        next_datum = channel.unary_unary(datum_messages.METHOD, datum_messages.request, datum_messages.env)
        while True:
            try:
                env = next_datum(error)
            except grpc.RpcError as failure:
                return _complain(module, _explain(failure))
            error = ""
            try:
                datum = datum_from(env, root)
                _announce(module, datum)
                if process is None:
                    process = _start(module, os.environ.get(STAGE, ""))
                process(datum)
            except (Exception, SystemExit) as failure:
                traceback.print_exc(file=sys.stdout)
                error = reason(failure)
                # Pachyderm restarts the process after a failed datum; if a worker continues, it gets the same clean
                # start.
                process = None


def load(module: str) -> ModuleType:
    """Imports a module by name: a stage, or a part of one that must not be imported before it is needed.

    Exempts imported objects, which are never freed, from garbage collection: scanning them, during the imports and ever
    after, takes a fifth of the time until TensorFlow has its first picture.
    """
    gc.disable()
    try:
        imported = importlib.import_module(module)
        gc.freeze()
    finally:
        gc.enable()
    return imported


def _start(module: str, deployed: str = "") -> DatumHandler:
    """Imports and starts the stage. deployed: the version of its code that a pipeline states, "" for none."""
    stage = load(module)
    if deployed and (why := refusal(_stage(module).replace("_", "-"), stage.VERSION, deployed)):
        raise StageError(why)
    process: DatumHandler = stage.start(os.environ)
    return process


def reason(failure: BaseException) -> str:
    """The text that reports an exception: a StageError's own, or "<Type>: <message>".

    Never empty, since an empty text means success; at most LONGEST_REASON characters; always valid UTF-8.
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
    return f"the connection to the Pachyderm worker was lost: {details}"


def _announce(module: str, datum: Datum) -> None:
    """Prints the datum's paths, since the logs of batched user code have no datum id."""
    paths = " ".join(f"{each.name}:/{each.repo_path}" for each in datum.inputs.values())
    print(f"{_stage(module)}: {paths}")


def _run_plain(module: str, arguments: Sequence[str]) -> int:
    try:
        process: DatumHandler | None = None
        for datum in _datums_from_arguments(module, arguments):
            datum.out.mkdir(parents=True, exist_ok=True)
            _announce(module, datum)
            process = process or _start(module)
            process(datum)
    except (Exception, SystemExit) as failure:
        if isinstance(failure, SystemExit) and isinstance(failure.code, int | None):
            return failure.code or 0  # argparse has printed its message
        return _complain(module, reason(failure))
    except KeyboardInterrupt:
        return _complain(module, "interrupted", 130)
    return 0


def _datums_from_arguments(module: str, arguments: Sequence[str]) -> list[Datum]:
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description="Run this stage on plain directories. In a Pachyderm worker it takes no arguments.",
    )
    parser.add_argument(
        "--input",
        action="append",
        metavar="NAME=PATH",
        help="one input of the datum; in NAME=ROOT::PATH/BELOW the part after :: is the path in the repo",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the directory for the output; created if missing")
    parser.add_argument(
        "--datums",
        type=Path,
        metavar="FILE",
        help='any number of datums instead, one per line: {"inputs": {NAME: {"path": PATH, "repo_path": PATH IN THE '
        'REPO, "commit": ID OR ""}}, "out": DIR}',
    )
    given = parser.parse_args(arguments)
    if given.datums and not (given.input or given.out):
        return _datums_from_file(given.datums)
    if given.datums or not given.input or not given.out:
        parser.error("give --input and --out, or --datums alone")
    inputs: dict[str, DatumInput] = {}
    for text in given.input:
        each = _input_from_argument(text)
        if each.name in inputs:
            raise StageError(f"--input {each.name} is given twice; a datum has each input once")
        inputs[each.name] = each
    return [Datum(inputs, given.out.absolute())]


def _datums_from_file(file: Path) -> list[Datum]:
    """The datums of --datums. One process handles all of them, as it does a datum set in Pachyderm."""
    datums = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            stated = json.loads(line)
            inputs = {
                name: DatumInput(name, Path(each["path"]).absolute(), str(each["repo_path"]), str(each["commit"]))
                for name, each in stated["inputs"].items()
            }
            datums.append(Datum(inputs, Path(stated["out"]).absolute()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StageError(f"line {number} of {file} does not describe a datum: {reason(error)}") from error
        for each in inputs.values():
            if not each.path.exists():
                raise StageError(f"line {number} of {file}: no file or directory at {each.path}")
    return datums


def _input_from_argument(text: str) -> DatumInput:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise StageError(f"--input {text!r} is not NAME=PATH")
    path = Path(place).absolute()
    repo_path = path.name
    root, separator, below = place.partition("::")
    if separator and not path.exists():  # an existing path with "::" in its name is taken as it is
        path = Path(root, below).absolute()
        repo_path = below.strip("/")
    if not path.exists():
        raise StageError(f"--input {name}: no file or directory at {path}")
    return DatumInput(name, path, repo_path, "")


def _complain(module: str, text: str, status: int = 1) -> int:
    print(f"{_stage(module)}: {' '.join(text.split())}", file=sys.stderr)
    return status


def _stage(module: str) -> str:
    return module.rpartition(".")[2]
