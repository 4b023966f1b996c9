"""Files at URLs, of the web and of buckets: fetched if they have changed, and listed. Knows no library."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import NotFoundError

from pipelines.errors import LookalikeError
from pipelines.library.remote.host_queue import TRIES, TryAgainError
from pipelines.library.remote.picture_urls import FileVersion, PictureUrl, RemotePicture
from stages.datum.text_format import first_line
from stages.files.bucket import FAILURES, BadUrl, BucketError
from stages.files.remote_files import CREDENTIALS, RemoteFiles, bucket_parts
from stages.files.url_fetcher import FetchError, FetchLimits
from stages.record.file_kinds import has_picture_extension

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
        for left in range(TRIES - 1, -1, -1):
            try:
                with to.open("wb") as file:
                    self._files.copy(url, file)
                return
            except FetchError as error:
                if not error.temporary or not left:
                    raise LookalikeError(f"{url}: {error.message}") from error
                time.sleep(min(_LONGEST_WAIT, error.wait or 2.0 ** (TRIES - 1 - left)))

    def listed(self, url: str) -> Iterator[RemotePicture]:
        """The pictures of a bucket, or below a directory of it, or the one object of that URL. Their names begin with
        the last part of the URL, as those of a folder do. Objects with the ending of another kind of file are left out.
        Raises LookalikeError if it cannot be read."""
        bucket, path = bucket_parts(url)
        top = path.rstrip("/").rpartition("/")[2] or urlsplit(url).netloc
        try:
            store = self._files.bucket(bucket)
            found = None if not path or path.endswith("/") else _head(store, path)
            if found is not None:
                yield RemotePicture(PictureUrl(f"{bucket}/{path}", top), _version(found))
                return
            prefix = f"{path.rstrip('/')}/" if path else ""
            for page in obstore.list(store, prefix.rstrip("/") or None):
                for each in page:
                    key = str(each["path"])
                    if has_picture_extension(key) and key.startswith(prefix):
                        named = PictureUrl(f"{bucket}/{key.replace('%', '%25')}", f"{top}/{key.removeprefix(prefix)}")
                        yield RemotePicture(named, _version(each))
        except (*FAILURES, BadUrl, BucketError) as error:
            raise LookalikeError(f"{url} cannot be listed: {first_line(error)}; {CREDENTIALS}") from error


def _head(store: Any, path: str) -> Any:
    try:
        return obstore.head(store, path)
    except (NotFoundError, FileNotFoundError):
        return None


def _version(meta: Any) -> FileVersion:
    return FileVersion(meta["e_tag"] or "", meta["last_modified"].isoformat(), int(meta["size"]))
