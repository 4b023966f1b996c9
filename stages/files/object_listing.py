"""The pictures of buckets and of lists of URLs, as their servers list them, without their bytes. Knows no library."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import obstore
from obstore.exceptions import NotFoundError

from stages.datum.contract import StageError
from stages.datum.text_format import first_line
from stages.files.bucket import FAILURES, BadUrl, BucketError
from stages.files.remote_files import CREDENTIALS, RemoteFiles, bucket_parts
from stages.files.url_fetcher import FetchedFile, FetchError
from stages.record.file_kinds import has_picture_extension
from stages.record.url_names import name_of
from stages.record.url_records import LIST, UrlRecord, is_store

_AT_ONCE = 16
_AHEAD = 256


class ListedObject(NamedTuple):
    """A picture in a bucket: its name in the library, its URL, in which what is not plain is quoted, and the version
    that its server states. modified: a date as ISO 8601 has it. size: in bytes."""

    name: str
    url: str
    etag: str
    modified: str
    size: int


def list_objects(files: RemoteFiles, url: str) -> Iterator[ListedObject]:
    """The pictures of a bucket, or below a directory of it, or the one object of that URL. Their names begin with the
    last part of the URL, as those of a folder do. Objects with the ending of another kind of file are left out. Raises
    StageError if it cannot be read."""
    try:
        bucket, path = bucket_parts(url)
        top = path.rstrip("/").rpartition("/")[2] or urlsplit(bucket).netloc
        store = files.bucket(bucket)
        if path and not path.endswith("/") and (found := _head(store, path)) is not None:
            yield _listed(top, bucket, path, found)
            return
        prefix = f"{path.rstrip('/')}/" if path else ""
        for page in obstore.list(store, prefix.rstrip("/") or None):
            for each in page:
                key = str(each["path"])
                if has_picture_extension(key) and key.startswith(prefix):
                    yield _listed(f"{top}/{key.removeprefix(prefix)}", bucket, key, each)
    except (*FAILURES, BadUrl, BucketError) as error:
        raise StageError(f"{url} cannot be listed: {first_line(error)}; {CREDENTIALS}") from error


def _head(store: Any, path: str) -> Any:
    try:
        return obstore.head(store, path)
    except (NotFoundError, FileNotFoundError):
        return None


def _listed(name: str, bucket: str, key: str, meta: Any) -> ListedObject:
    modified = meta["last_modified"].isoformat()
    return ListedObject(name, f"{bucket}/{quote(key)}", meta["e_tag"] or "", modified, int(meta["size"]))


def list_pictures(files: RemoteFiles, url: str) -> Iterator[UrlRecord]:
    """The pictures of a bucket, see `list_objects`, or those on the list at a URL, with the version and the size that
    their servers state ("" and -1 for none) and without a SHA-256. Raises StageError."""
    if urlsplit(url).path.lower().endswith(LIST):
        yield from _on_list(files, url)
    elif is_store(url):
        for each in list_objects(files, url):
            yield UrlRecord(each.name, each.url, each.etag, "", each.size)
    else:
        raise StageError(
            f"{url} is neither a bucket nor a list: write s3://bucket/folder, gs:// or az://, or the URL of a "
            f"file of URLs with the ending {LIST}"
        )


def _on_list(files: RemoteFiles, url: str) -> Iterator[UrlRecord]:
    try:
        found = files.get(url)
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
            yield from pool.map(partial(_record, files), some)


def _record(files: RemoteFiles, url: str) -> UrlRecord:
    """A picture on a list. One that is gone, or that its server refuses, has no version: fetch says why."""
    try:
        found = files.state(url)
    except FetchError as error:
        if error.temporary:
            raise StageError(f"{url}: {error.message}; the list is read again later") from error
        found = FetchedFile(b"")
    return UrlRecord(name_of(url), url, found.etag or found.modified, "", found.size)
