"""Large files from the web: resumed after an interruption, and checked. Knows neither data sets nor servers."""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import LookalikeError

_PIECE = 1 << 20
_SECONDS = 60
"""Seconds without a byte after which a download fails."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the web: its address, its local name, its size in bytes and its md5 (32 hex digits)."""

    url: str
    name: str
    size: int
    md5: str


def download(remote: RemoteFile, directory: Path, report: Callable[[int], None] = lambda _: None) -> Path:
    """The file in a directory, which is created; from the web unless it is there, continuing after what an interrupted
    download has left. `report` hears how many more bytes are here.

    Raises LookalikeError, which says how to bring the file by hand, if it cannot be had or is not the right one.
    """
    path, partial = directory / remote.name, directory / f"{remote.name}.part"
    directory.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        have = partial.stat().st_size if partial.exists() else 0
        report(have)
        if have < remote.size:
            try:
                _fetch(remote, partial, have, report)
            except (OSError, http.client.HTTPException) as error:
                raise LookalikeError(
                    f"cannot download {remote.url} ({_words(error)}): try again, which resumes the download; or get "
                    f"the file elsewhere ({remote.size:,} bytes, md5 {remote.md5}) and put it at {path}"
                ) from error
        _check(remote, partial)
        partial.rename(path)
    elif path.stat().st_size != remote.size:
        raise LookalikeError(f"{path} has {path.stat().st_size:,} bytes, not {remote.size:,}: delete it and try again")
    return path


def _fetch(remote: RemoteFile, partial: Path, have: int, report: Callable[[int], None]) -> None:
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:
        goes_on = have > 0 and response.status == http.HTTPStatus.PARTIAL_CONTENT
        if not goes_on:
            report(-have)  # the server does not support ranges: from the start
        with partial.open("ab" if goes_on else "wb") as file:
            while piece := response.read(_PIECE):
                file.write(piece)
                report(len(piece))
    if partial.stat().st_size < remote.size:
        raise OSError("the connection ended early")


def _check(remote: RemoteFile, partial: Path) -> None:
    with partial.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != remote.md5:
        size = partial.stat().st_size
        partial.unlink()
        raise LookalikeError(
            f"{remote.url} sent a wrong file ({size:,} bytes, md5 {found}; expected {remote.size:,} "
            f"bytes, md5 {remote.md5}): it was deleted; try again"
        )


def _words(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(cause) or type(error).__name__
