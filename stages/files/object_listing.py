"""The pictures of buckets and of lists of URLs, as their servers list them, without their bytes. Knows no library."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from urllib.parse import quote, urlsplit

from stages.datum.contract import StageError
from stages.datum.text_format import first_line
from stages.files.bucket import FAILURES, BadUrl, BucketError
from stages.files.remote_files import CREDENTIALS, RemoteFiles, bucket_parts
from stages.files.url_fetcher import FetchedFile, FetchError
from stages.record.url_names import name_of
from stages.record.url_records import UrlRecord, is_store

LIST = ".txt"
"""The ending of a list: a URL on each line, but for empty lines and those that begin with #."""

_AT_ONCE = 16
_AHEAD = 256


class ObjectListing:
    """Lists pictures."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files

    def records(self, url: str) -> Iterator[UrlRecord]:
        """The pictures below the URL of a bucket or a directory in it, or those on the list at a URL, with the version
        and the size that their servers state ("" and -1 for none) and without a SHA-256. Those of a bucket are named as
        `lookalike add` names them, by the last part of the URL and the path below it. Raises StageError."""
        if urlsplit(url).path.lower().endswith(LIST):
            yield from self._on_list(url)
        elif is_store(url):
            yield from self._in_bucket(url)
        else:
            raise StageError(
                f"{url} is neither a bucket nor a list: write s3://bucket/folder, gs:// or az://, or the URL of a "
                f"file of URLs with the ending {LIST}"
            )

    def _in_bucket(self, url: str) -> Iterator[UrlRecord]:
        try:
            bucket, _ = bucket_parts(url)
            for name, key, each in self._files.listed(url):
                yield UrlRecord(name, f"{bucket}/{quote(key)}", each["e_tag"] or "", "", int(each["size"]))
        except (*FAILURES, BadUrl, BucketError) as error:
            raise StageError(f"{url} cannot be listed: {first_line(error)}; {CREDENTIALS}") from error

    def _on_list(self, url: str) -> Iterator[UrlRecord]:
        try:
            found = self._files.get(url)
            assert found is not None
            lines = (each.strip() for each in found.content.decode("utf-8-sig").splitlines())
        except FetchError as error:
            raise StageError(f"the list {url} cannot be read: {error.message}") from error
        except UnicodeDecodeError as error:
            raise StageError(f"the list {url} is not UTF-8: save it as UTF-8") from error
        wanted = dict.fromkeys(each for each in lines if each and not each.startswith("#"))
        waiting = iter(wanted)
        with ThreadPoolExecutor(_AT_ONCE, "list") as pool:
            while some := list(islice(waiting, _AHEAD)):
                yield from pool.map(self._record, some)

    def _record(self, url: str) -> UrlRecord:
        """A picture on a list. One that is gone, or that its server refuses, has no version: fetch says why."""
        try:
            found = self._files.state(url)
        except FetchError as error:
            if error.temporary:
                raise StageError(f"{url}: {error.message}; the list is read again later") from error
            found = FetchedFile(b"")
        return UrlRecord(name_of(url), url, found.etag or found.modified, "", found.size)
