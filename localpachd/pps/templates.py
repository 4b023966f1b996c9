"""Jsonnet templates of specifications. Each is evaluated in a process of its own, since it is a program and must not
block or crash the server. Imports come from the web only, so that no template reads files of this machine, and from
addresses that the server may reach.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

import _gojsonnet

from localpachd.errors import FailedPrecondition, PachError
from localpachd.storage import web
from localpachd.storage.reach import Reach, network

TIME_LIMIT = 60.0
"""Seconds that a template may take."""
_IMPORT_TIMEOUT = 20.0
_LARGEST_IMPORT = 16 << 20
_MEMORY = 4 << 30
_PR_SET_PDEATHSIG = 1  # prctl(2)


def render(template: str, arguments: Mapping[str, str], reach: Reach) -> str:
    """The JSON text that a template evaluates to with these top-level arguments, all of them strings. `reach` holds the
    networks that it may import from."""
    networks = [str(each) for each in reach.networks]
    asked = {"template": template, "arguments": dict(arguments), "networks": networks, "parent": os.getpid()}
    try:
        run = subprocess.run(
            [sys.executable, "-m", "localpachd.pps.templates"],
            input=json.dumps(asked), capture_output=True, text=True, timeout=TIME_LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PachError(f"template err: it takes more than {TIME_LIMIT:.0f} seconds") from None
    if run.returncode != 0:
        last = (run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1]
        raise PachError(f"template err: the evaluation failed: {last}")
    said: dict[str, str] = json.loads(run.stdout)
    if "error" in said:
        raise PachError(f"template err: {said['error']}")
    return said["json"]


def _evaluate(template: str, arguments: Mapping[str, str], reach: Reach) -> dict[str, Any]:
    refused: list[str] = []

    def fetch(_: str, path: str) -> tuple[str, bytes]:
        try:
            return path, _fetch(path, reach)
        except RuntimeError as error:
            refused.append(str(error))
            raise

    try:
        return {"json": _gojsonnet.evaluate_snippet("main", template, tla_vars=arguments, import_callback=fetch)}
    except (RuntimeError, UnicodeDecodeError) as error:
        # The library may garble the text of a refused import, so it is kept here.
        return {"error": "; ".join(refused) or str(error)}


def _fetch(path: str, reach: Reach) -> bytes:
    """A library from the web. Raises RuntimeError, the only exception that the evaluator passes on."""
    if not path.startswith(("http://", "https://")):
        raise RuntimeError(f"import not available {path}: only http:// and https:// are")
    data = bytearray()
    try:
        for piece in web.get(path, reach, _IMPORT_TIMEOUT):
            data += piece
            if len(data) > _LARGEST_IMPORT:
                raise RuntimeError(f"{path} has more than {_LARGEST_IMPORT} bytes")
    except web.HttpError as error:
        raise RuntimeError(f"http code {str(error).split()[0]} fetching {path}") from error
    except (FailedPrecondition, OSError, ValueError, HTTPException) as error:
        raise RuntimeError(f"cannot fetch {path}: {error}") from error
    return bytes(data)


def _end_with(parent: int) -> None:
    """Makes the system end this process when the server ends, which otherwise ends an evaluation that takes long."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        sys.exit("the server has ended")


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    _end_with(asked["parent"])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(TIME_LIMIT), int(TIME_LIMIT)))
    reach = Reach(networks=tuple(map(network, asked["networks"])))
    json.dump(_evaluate(asked["template"], asked["arguments"], reach), sys.stdout)
