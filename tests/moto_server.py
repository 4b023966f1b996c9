"""moto's S3 server, in a process of its own on a free port of this machine."""

import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from obstore.store import S3Store

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}

_PLACE = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True)
class MotoServer:
    """url: its endpoint."""

    url: str
    process: "subprocess.Popen[str]"

    def bucket(self, name: str) -> Any:
        """A new bucket, for obstore."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/{name}", method="PUT")).close()
        return S3Store(
            name,
            config={"endpoint": self.url, "region": "us-east-1", "access_key_id": "key", "secret_access_key": "secret"},
            client_options={"allow_http": True},
        )


@contextmanager
def moto_server(port: int = 0) -> Iterator[MotoServer]:
    """A server without buckets; it ends with the `with` statement."""
    command = [sys.executable, "-P", "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert process.stderr is not None
        found = next(found for line in process.stderr if (found := _PLACE.search(line)))
        _drain(process)
        yield MotoServer(found[1], process)
    finally:
        process.kill()
        process.wait()


def _drain(process: "subprocess.Popen[str]") -> None:
    """Reads its log from now on, which would fill the pipe."""
    threading.Thread(target=lambda: process.stderr and process.stderr.read(), daemon=True).start()
