"""Files at URLs, of the web and of buckets: fetched if they have changed, and listed. Knows no library."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import NotFoundError, NotModifiedError, PermissionDeniedError, UnauthenticatedError

from pipelines.errors import LookalikeError
from pipelines.library.remote.host_queue import TryAgainError
from pipelines.library.remote.picture_urls import FileVersion, PictureUrl, RemotePicture, is_store
from stages.datum.text_format import first_line
from stages.files import url_fetcher
from stages.files.bucket import FAILURES, BadUrl, BucketError, open_bucket
from stages.files.url_fetcher import FetchError, FetchLimits
from stages.record.file_kinds import has_picture_extension

_BUCKET = re.compile(r"(?P<bucket>[a-z0-9]+://[^/]+)/?(?P<path>.*)", re.IGNORECASE)


class PictureFetcher:
    """Fetches files. limits: of each. May be used by several threads."""

    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits
        self._buckets: dict[str, Any] = {}

    def get(self, url: str, held: FileVersion | None) -> tuple[bytes, FileVersion] | None:
        """The file at a URL and its version; None if it is certainly the one held. Raises TryAgainError for what may be
        there later, and OSError with the reason for what is not."""
        return self._of_bucket(url, held) if is_store(url) else self._of_web(url, held)

    def listed(self, url: str) -> Iterator[RemotePicture]:
        """The pictures of a bucket, or below a directory of it, or the one object of that URL. Their names begin with
        the last part of the URL, as those of a folder do. Objects with the ending of another kind of file are left out.
        Raises LookalikeError if it cannot be read."""
        bucket, path = _parts(url)
        top = path.rstrip("/").rpartition("/")[2] or urlsplit(url).netloc
        try:
            store = self._bucket(bucket)
            found = None if not path or path.endswith("/") else _head(store, path)
            if found is not None:
                yield RemotePicture(PictureUrl(f"{bucket}/{path}", top), _version(found))
                return
            prefix = f"{path.rstrip('/')}/" if path else ""
            for page in obstore.list(store, prefix.rstrip("/") or None):
                for each in page:
                    key = str(each["path"])
                    if has_picture_extension(key) and key.startswith(prefix):
                        named = PictureUrl(f"{bucket}/{key}", f"{top}/{key.removeprefix(prefix)}")
                        yield RemotePicture(named, _version(each))
        except (*FAILURES, BadUrl, BucketError) as error:
            raise LookalikeError(f"{url} cannot be listed: {first_line(error)}; {_CREDENTIALS}") from error

    def _of_web(self, url: str, held: FileVersion | None) -> tuple[bytes, FileVersion] | None:
        version = held or FileVersion()
        try:
            found = url_fetcher.fetch_newer(url, self._limits, version.etag, version.modified)
        except FetchError as error:
            if error.temporary:
                raise TryAgainError(error.message, error.wait) from error
            raise OSError(error.message) from error
        if found is None:
            return None
        return found.content, FileVersion(found.etag, found.modified, len(found.content))

    def _of_bucket(self, url: str, held: FileVersion | None) -> tuple[bytes, FileVersion] | None:
        bucket, path = _parts(url)
        try:
            options: Any = {"if_none_match": held.etag} if held is not None and held.etag else {}
            found = obstore.get(self._bucket(bucket), path, options=options)
            version = _version(found.meta)
            if version.size > self._limits.bytes:
                raise OSError(f"it has more than {self._limits.bytes:,} bytes")
            return bytes(found.bytes()), version
        except NotModifiedError:
            return None
        except (NotFoundError, FileNotFoundError) as error:
            raise OSError("there is no such object") from error
        except (PermissionDeniedError, UnauthenticatedError, PermissionError, BadUrl, BucketError) as error:
            raise OSError(f"{first_line(error)}; {_CREDENTIALS}") from error
        except FAILURES as error:
            if type(error) is OSError:
                raise
            raise TryAgainError(first_line(error)) from error

    def _bucket(self, url: str) -> Any:
        if url not in self._buckets:
            self._buckets[url] = open_bucket(url)
        return self._buckets[url]


_CREDENTIALS = "credentials come from the variables of the provider's own tools, such as AWS_ACCESS_KEY_ID"


def _parts(url: str) -> tuple[str, str]:
    """The URL of the bucket, and the path in it."""
    found = _BUCKET.fullmatch(url)
    if found is None:
        raise BadUrl(f"{url} has no bucket")
    return found["bucket"], unquote(found["path"])


def _head(store: Any, path: str) -> Any:
    try:
        return obstore.head(store, path)
    except (NotFoundError, FileNotFoundError):
        return None


def _version(meta: Any) -> FileVersion:
    return FileVersion(meta["e_tag"] or "", meta["last_modified"].isoformat(), int(meta["size"]))
