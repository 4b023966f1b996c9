"""A service as a bare program, the command of a Pachyderm service or of a pod: its start, its lines and its end.

All that it needs comes from variables and from a directory of secrets: see stages.serving.follow.configuration. Knows
no service: `stages.serve` and `stages.classify_serve` say which one they are."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from stages.datum.contract import load, reason
from stages.datum.file_cache import FileCache, default_place

_CACHE = "CACHE"
"""The variable that names the directory for files that the service fetches."""


@dataclass(frozen=True)
class ServiceProgram:
    """name: at the front of all lines. secrets: their directory. port: unless LISTEN names one. searches: whether it
    follows the index. input: of its pipeline, whose commit Pachyderm names in a variable; words: for its content."""

    name: str
    secrets: Path
    port: int
    searches: bool
    input: str
    words: str


def main(program: ServiceProgram) -> NoReturn:
    """Serves until it is told to end: status 0 after SIGTERM, 130 after Ctrl-C, 1 with a sentence on stderr for what
    the user can change."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    try:
        status = _serve(program, os.environ)
    except KeyboardInterrupt:
        status = 130
    except (Exception, SystemExit) as failure:
        print(f"{program.name}: {' '.join(reason(failure).split())}", file=sys.stderr)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # whoever read it has gone
            stream.flush()
    os._exit(status)  # the interpreter would wait for a model that is still being loaded


def _serve(program: ServiceProgram, environment: Mapping[str, str]) -> int:
    """Serves; returns the exit status. The imports may fail, so they come here."""
    read = load("stages.serving.follow.configuration").from_environment
    configuration = read(environment, program.secrets, port=program.port)
    running = load("stages.serving.run.service_runner")

    def say(text: str) -> None:
        print(f"{program.name}: {text}")

    if commit := environment.get(f"{program.input}_COMMIT"):
        say(f"{program.words} of commit {commit[:12]} is served as soon as it is finished")
    heard = running.run(
        configuration,
        FileCache(Path(environment[_CACHE]) if environment.get(_CACHE) else default_place()),
        environment,
        say,
        say,
        running.ServiceRole(program.searches),
    )
    return 130 if heard == running.INTERRUPTED else 0
