"""Files at URLs, of the web and of buckets: fetched if they have changed, and listed. Knows no library."""

from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import LookalikeError
from pipelines.library.remote.host_queue import TRIES, TryAgainError
from pipelines.library.remote.picture_urls import FileVersion, PictureUrl
from stages.datum.contract import StageError
from stages.files.object_listing import list_objects
from stages.files.remote_files import RemoteFiles, patiently
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

    def listed(self, url: str) -> Iterator[PictureUrl]:
        """The pictures of a bucket, see list_objects. Raises LookalikeError if it cannot be read."""
        try:
            for each in list_objects(self._files, url):
                version = FileVersion(each.etag, each.modified, each.size)
                yield PictureUrl(each.url, each.name, version=version)
        except StageError as error:
            raise LookalikeError(str(error)) from error
