"""Files at URLs of the web and in buckets, and the pictures of records (stages.record.url_records) among them, which
have to be the ones that were recorded. Knows no library.

Credentials of buckets come from the environment, see stages.files.bucket.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO, TypeVar
from urllib.parse import unquote

import obstore
from obstore.exceptions import NotFoundError, NotModifiedError, PermissionDeniedError, UnauthenticatedError

from stages.datum.contract import StageError
from stages.datum.text_format import first_line
from stages.files import url_fetcher
from stages.files.bucket import FAILURES, BadUrl, BucketError, open_bucket
from stages.files.public_addresses import FETCH_FROM, networks
from stages.files.url_fetcher import TOO_LARGE, FetchedFile, FetchError, FetchLimits
from stages.record import url_records
from stages.record.file_limits import MAX_PICTURE_BYTES
from stages.record.url_records import UrlRecord, is_store

CREDENTIALS = "credentials come from the variables of the provider's own tools, such as AWS_ACCESS_KEY_ID"

_BUCKET = re.compile(r"(?P<bucket>[a-z0-9]+://[^/]+)/?(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_SECONDS = 120.0
"""For which a picture may take to come."""

_MOST_COPIED = 1 << 40
_COPY_SECONDS = 6 * 3600.0

_TRIES = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 15.0

Answer = TypeVar("Answer")


class RemoteFiles:
    """Fetches files. limits: of each. May be used by several threads."""

    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits
        self._buckets: dict[str, Any] = {}

    def get(self, url: str, etag: str = "", modified: str = "") -> FetchedFile | None:
        """The file at a URL; None if it is certainly still the one that had this `etag` and date. Raises FetchError."""
        if is_store(url):
            return self._of_bucket(url, etag)
        return url_fetcher.fetch_newer(url, self._limits, etag, modified)

    def get_patiently(self, url: str) -> FetchedFile:
        """The same file in any version, asked for again after a moment if its server is busy. Raises FetchError."""
        found = patiently(lambda: self.get(url), _TRIES, _FIRST_WAIT, _LONGEST_WAIT)
        assert found is not None
        return found

    def state(self, url: str) -> FetchedFile:
        """What its server says of the file at a URL, without its content. Raises FetchError."""
        if not is_store(url):
            return url_fetcher.state(url, self._limits)
        with _refusing():
            bucket, path = bucket_parts(url)
            meta = obstore.head(self.bucket(bucket), path)
            return FetchedFile(b"", meta["e_tag"] or "", meta["last_modified"].isoformat(), int(meta["size"]))

    def copy(self, url: str, to: BinaryIO) -> None:
        """Copies the file at a URL into an open one, however large it is. Raises FetchError."""
        if not is_store(url):
            limits = replace(self._limits, bytes=_MOST_COPIED, seconds=_COPY_SECONDS)
            url_fetcher.fetch_newer(url, limits, to=to)
            return
        with _refusing():
            for piece in self._open(url, {}).stream(min_chunk_size=1 << 20):
                to.write(piece)

    def bucket(self, url: str) -> Any:
        """The bucket of that URL. Raises BadUrl, and BucketError."""
        if url not in self._buckets:
            self._buckets[url] = open_bucket(url)
        return self._buckets[url]

    def _of_bucket(self, url: str, etag: str) -> FetchedFile | None:
        with _refusing():
            try:
                found = self._open(url, {"if_none_match": etag} if etag else {})
            except NotModifiedError:
                return None
            if int(found.meta["size"]) > self._limits.bytes:
                raise FetchError(413, TOO_LARGE, f"it has more than {self._limits.bytes:,} bytes")
            date = found.meta["last_modified"].isoformat()
            return FetchedFile(bytes(found.bytes()), found.meta["e_tag"] or "", date)

    def _open(self, url: str, options: Any) -> Any:
        bucket, path = bucket_parts(url)
        return obstore.get(self.bucket(bucket), path, options=options)


def patiently(ask: Callable[[], Answer], tries: int, first_wait: float, longest_wait: float) -> Answer:
    """What `ask` gives, which is called again after some seconds if a server is busy. Raises FetchError."""
    while True:
        try:
            return ask()
        except FetchError as error:
            tries -= 1
            if not error.temporary or not tries:
                raise
            time.sleep(min(first_wait if error.wait is None else error.wait, longest_wait))
            first_wait *= 2


@contextmanager
def _refusing() -> Iterator[None]:
    """Turns the errors of buckets into FetchError."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise _refused("there is no such object") from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError, BadUrl, BucketError) as error:
        raise _refused(f"{first_line(error)}; {CREDENTIALS}") from error
    except FAILURES as error:
        raise _refused(first_line(error), temporary=True) from error


def original(files: RemoteFiles, record: UrlRecord) -> bytes:
    """The picture of a record, which is asked for again after a moment if its server is busy. Raises
    stages.record.url_records.OtherBytesError for any other file, and StageError, which names the URL, if there is none:
    it may be there later."""
    try:
        found = files.get_patiently(record.url)
    except FetchError as error:
        if error.code == TOO_LARGE:
            url_records.verify(record, b"")
        private = error.code == "private-address"
        fix = "; FETCH_FROM allows its network: see the overlay private-urls in docs/overlays.md" if private else ""
        raise StageError(f"{record.path} cannot be fetched from {record.url} now: {error.message}{fix}") from error
    url_records.verify(record, found.content)
    return found.content


def remote_files(environment: Mapping[str, str]) -> RemoteFiles:
    """Fetches from public addresses, and from the networks that the environment names. Raises StageError for a variable
    that is not a list of networks."""
    allowed = networks(environment.get(FETCH_FROM, ""))
    return RemoteFiles(FetchLimits(MAX_PICTURE_BYTES, _SECONDS, allowed=allowed))


def originals(environment: Mapping[str, str]) -> Callable[[UrlRecord], bytes]:
    """Gives the pictures of records as `original` does, see `remote_files`."""
    return partial(original, remote_files(environment))


def bucket_parts(url: str) -> tuple[str, str]:
    """The URL of the bucket, and the path in it. Raises BadUrl."""
    found = _BUCKET.fullmatch(url)
    if found is None:
        raise BadUrl(f"{url} has no bucket")
    return found["bucket"], unquote(found["path"])


def _refused(message: str, temporary: bool = False) -> FetchError:
    return FetchError(422, "url-not-fetched", message, temporary)
