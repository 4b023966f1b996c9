"""The program that evaluates one Jsonnet template: a JSON object on standard input, another on standard output. The
server does not import it: it brings the runtime of Go with its threads."""

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

import _gojsonnet

from localpachd.errors import FailedPrecondition
from localpachd.storage import web_files
from localpachd.storage.url_reach import UrlReach, network

_IMPORT_TIMEOUT = 20.0
_LARGEST_IMPORT = 16 << 20
_MEMORY = 4 << 30
_PR_SET_PDEATHSIG = 1  # prctl(2)


def _evaluate(template: str, arguments: Mapping[str, str], reach: UrlReach) -> dict[str, Any]:
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


def _fetch(path: str, reach: UrlReach) -> bytes:
    """A library from the web. Raises RuntimeError, the only exception that the evaluator passes on."""
    if not path.startswith(("http://", "https://")):
        raise RuntimeError(f"import not available {path}: only http:// and https:// are")
    data = bytearray()
    try:
        for piece in web_files.get(path, reach, _IMPORT_TIMEOUT):
            data += piece
            if len(data) > _LARGEST_IMPORT:
                raise RuntimeError(f"{path} has more than {_LARGEST_IMPORT} bytes")
    except web_files.HttpError as error:
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
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
    reach = UrlReach(networks=tuple(map(network, asked["networks"])))
    json.dump(_evaluate(asked["template"], asked["arguments"], reach), sys.stdout)
