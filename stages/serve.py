"""The HTTP service as a bare program, `python -m stages.serve`: the command of a Pachyderm service, or of a pod.

All that it needs comes from variables and from a directory of secrets: see stages.serving.configuration.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from stages.contract import PFS_ROOT, load, reason
from stages.filecache import FileCache, default_place

_CACHE = "CACHE"
"""The variable that names the directory for files that the service fetches."""

_COMMIT = "index_COMMIT"
"""The variable in which Pachyderm names the job's commit of the index."""


def main() -> NoReturn:
    """Serves until it is told to end: status 0 after SIGTERM, 130 after Ctrl-C, 1 with a sentence on stderr for what
    the user can change."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    try:
        status = serve(os.environ)
    except KeyboardInterrupt:
        status = 130
    except (Exception, SystemExit) as failure:
        print(f"serve: {' '.join(reason(failure).split())}", file=sys.stderr)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # whoever read it has gone
            stream.flush()
    os._exit(status)  # the interpreter would wait for a model that is still being loaded


def serve(environment: Mapping[str, str]) -> int:
    """Serves; returns the exit status. The imports may fail, so they come here."""
    configuration = load("stages.serving.configuration").from_environment(environment)
    program = load("stages.serving.program")
    if environment.get(_COMMIT):
        _say(f"the index of commit {environment[_COMMIT][:12]} is served as soon as it is finished")
    heard = program.run(
        configuration,
        FileCache(Path(environment[_CACHE]) if environment.get(_CACHE) else default_place()),
        environment,
        lambda url: _say(url),
        _say,
        mounted=_mounted(environment),
    )
    return 130 if heard == program.INTERRUPTED else 0


def _mounted(environment: Mapping[str, str]) -> Path | None:
    """Where Pachyderm has put the inputs of its worker."""
    root = Path(environment.get(PFS_ROOT) or "/pfs")
    return root if "PPS_PIPELINE_NAME" in environment and (root / "index").is_dir() else None


def _say(text: str) -> None:
    print(f"serve: {text}")


if __name__ == "__main__":
    main()
