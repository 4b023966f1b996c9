"""Files at URLs, of the web and of buckets: fetched if they have changed, and listed. Knows no library."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import NotFoundError

from pipelines.errors import LookalikeError
from pipelines.library.remote.host_queue import TRIES, TryAgainError
from pipelines.library.remote.picture_urls import FileVersion, PictureUrl, RemotePicture
from stages.datum.text_format import first_line
from stages.files.bucket import FAILURES, BadUrl, BucketError
from stages.files.remote_files import CREDENTIALS, RemoteFiles, bucket_parts, patiently
from stages.files.url_fetcher import FetchError, FetchLimits

_LONGEST_WAIT = 60.0


class PictureFetcher:
    """Fetches files. limits: of each. May be used by several threads."""

    def __init__(self, limits: FetchLimits) -> None:
        self._files = RemoteFiles(limits)

    def get(self, url: str, held: FileVersion | None) -> tuple[bytes, FileVersion] | None:
        """The file at a URL and its version; None if it is certainly the one held. Raises TryAgainError for what may be
        there later, and OSError with the reason for what is not."""
        version = held or FileVersion()
        try:
            found = self._files.get(url, version.etag, version.modified)
        except FetchError as error:
            if error.temporary:
                raise TryAgainError(error.message, error.wait) from error
            raise OSError(error.message) from error
        return None if found is None else (found.content, FileVersion(found.etag, found.modified, len(found.content)))

    def download(self, url: str, to: Path) -> None:
        """Copies the file at a URL, however large it is. Raises LookalikeError if it cannot be had."""

        def copy() -> None:
            with to.open("wb") as file:
                self._files.copy(url, file)

        try:
            patiently(copy, TRIES, 1.0, _LONGEST_WAIT)
        except FetchError as error:
            raise LookalikeError(f"{url}: {error.message}") from error

    def listed(self, url: str) -> Iterator[RemotePicture]:
        """The pictures of a bucket, or below a directory of it (see RemoteFiles.listed), or the one object of that URL,
        whatever its ending. Raises LookalikeError if it cannot be read."""
        bucket, path = bucket_parts(url)
        try:
            found = None if not path or path.endswith("/") else _head(self._files.bucket(bucket), path)
            if found is not None:
                yield RemotePicture(PictureUrl(f"{bucket}/{path}", path.rpartition("/")[2]), _version(found))
                return
            for name, key, each in self._files.listed(url):
                yield RemotePicture(PictureUrl(f"{bucket}/{key.replace('%', '%25')}", name), _version(each))
        except (*FAILURES, BadUrl, BucketError) as error:
            raise LookalikeError(f"{url} cannot be listed: {first_line(error)}; {CREDENTIALS}") from error


def _head(store: Any, path: str) -> Any:
    try:
        return obstore.head(store, path)
    except (NotFoundError, FileNotFoundError):
        return None


def _version(meta: Any) -> FileVersion:
    return FileVersion(meta["e_tag"] or "", meta["last_modified"].isoformat(), int(meta["size"]))
