"""A service as a process of the command that serves, and questions to it. Knows no fixture."""

import http.client
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pipelines.client.services.service_discovery import ServiceEndpoint
from tests.command import Command


@contextmanager
def serving(
    command: Command, words: Sequence[str], *arguments: str | Path
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The process of a service on a free port, and its URL. words: the command's name."""
    where = () if "--listen" in arguments else ("--port", "0")
    process = command.start(*words, *where, "--no-browser", *arguments, interruptible=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not re.match(rf"lookalike {' '.join(words)}: https?://127\.0\.0\.1:\d+$", line):
            process.kill()
            raise AssertionError((line, process.communicate()))
        yield process, line.rpartition(" ")[2].strip()
    finally:
        process.kill()
        process.wait()


def asked(
    url: str, path: str, headers: dict[str, str] | None = None, certificate: Path | None = None
) -> tuple[int, str]:
    """The status and the body of an answer to GET."""
    parts = urlsplit(url)
    trust = ServiceEndpoint(url, "", certificate=certificate).trust()
    connection = (
        http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        if trust is None
        else http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=60, context=trust)
    )
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()
