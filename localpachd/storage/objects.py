"""Files outside this server: directories of this machine, object stores, and, read-only, the web. Knows no commits.

URLs are Pachyderm's (`src/internal/obj/factory.go`), with `file:///dir` as another form of `local:///dir`. Credentials
come from the server's environment, in the variables of each provider's own tools (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL,
GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY...); for `minio` also in MINIO_ID and MINIO_SECRET.
"""

import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from localpachd.errors import PachError

WEB = ("http", "https")
_DISK = ("file", "local")
_BLOCK = 1 << 20
_SMALL = 8 << 20
_SECONDS = 60
# Callers retry later and can report it; the library's own limit is minutes.
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_FLAGS = {"disableSSL", "s3ForcePathStyle", "use_path_style"}


@dataclass(frozen=True, slots=True)
class Place:
    """A parsed URL: an object, or everything below it. On this machine's disk and on the web `bucket` is "" and `path`
    is complete; elsewhere a path has no slash at its ends."""

    url: str
    scheme: str
    bucket: str
    path: str
    account: str = ""
    endpoint: str = ""
    options: dict[str, str] = field(default_factory=dict)


def parse(url: str) -> Place:
    """Parses a URL; PachError for a scheme that is not known."""
    parts = urlsplit(url)
    scheme = "gs" if parts.scheme == "gcs" else parts.scheme
    path = parts.path.strip("/")
    options = dict(parse_qsl(parts.query))
    match scheme:
        case "http" | "https":
            return Place(url, scheme, "", url)
        case "file" | "local":
            return Place(url, scheme, "", _directory(url, parts.netloc, parts.path))
        case "s3" | "gs" | "azblob":
            return Place(url, scheme, parts.netloc, path, options=options)
        case "wasb":
            return Place(url, "azblob", parts.username or "", path, account=(parts.hostname or "").partition(".")[0])
        case "minio":
            bucket, _, key = path.partition("/")
            secure = os.environ.get("MINIO_SECURE", "").lower() in ("1", "true")
            return Place(url, scheme, bucket, key, endpoint=f"http{'s' * secure}://{parts.netloc}")
    raise PachError(f"unrecognized object store: {scheme}")


def check_target(url: str) -> None:
    """Refuses a URL to which `upload` could never write."""
    place = parse(url)
    if place.scheme in WEB:
        raise PachError(f"unrecognized object store: {place.scheme}")
    if place.scheme not in _DISK and not place.bucket:
        raise PachError(f"{url} has no bucket")
    with _failing(url):
        _store(place)


def upload(url: str, files: Iterable[tuple[str, Iterator[bytes]]]) -> int:
    """Writes files, each given as its path ("/a/b") and the pieces of its content, below a URL; replaces existing ones.
    Returns the number of bytes. Raises PachError on failure, and any exception of the iterators."""
    place = parse(url)
    check_target(url)
    store = _store(place)
    total = 0
    for path, pieces in files:
        counted = _Counted(pieces)
        with _failing(f"{url}: {path}"):
            if store is None:
                _write(Path(place.path) / path.strip("/"), counted)
            else:
                _put(store, f"{place.path}/{path.strip('/')}".strip("/"), iter(counted))
        total += counted.size
    return total


def download(url: str, recursive: bool = False) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of a URL: one file under the name "" or, with `recursive`, every file whose path begins with the URL's,
    under the rest of its path. The web has only single files. Raises PachError."""
    place = parse(url)
    if place.scheme in WEB:
        yield "", _fetched(url)
    elif place.scheme in _DISK:
        yield from _from_disk(place, recursive)
    else:
        with _failing(url):
            store = _store(place)
            names = list(_names(store, place.path)) if recursive else [place.path]
        for name in names:
            yield name.removeprefix(place.path), _object(store, name, url)


def _directory(url: str, host: str, path: str) -> str:
    if host not in ("", "localhost") or not path.startswith("/") or not path.strip("/"):
        raise PachError(f"{url} is not the URL of a directory: write file:///some/directory")
    return path


def _store(place: Place) -> Any:
    """The library's store for a bucket; None for this machine's disk."""
    match place.scheme:
        case "s3" | "minio":
            return S3Store(place.bucket, config=_s3_config(place), client_options=_client(place), retry_config=_RETRY)
        case "gs":
            return GCSStore(place.bucket, retry_config=_RETRY)
        case "azblob":
            account: Any = {"account_name": place.account} if place.account else {}
            return AzureStore(place.bucket, config=account, retry_config=_RETRY)
    return None


def _s3_config(place: Place) -> Any:
    options = place.options
    unknown = set(options) - {"region", "endpoint"} - _FLAGS
    if unknown:
        raise PachError(f"{place.url}: unknown parameters {', '.join(sorted(unknown))}; known: endpoint, region")
    config: dict[str, str] = {}
    region = options.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    config["region"] = region or "us-east-1"
    if endpoint := _endpoint(place):
        config["endpoint"] = endpoint
    if place.scheme == "minio" and "MINIO_ID" in os.environ:
        config["access_key_id"] = os.environ["MINIO_ID"]
        config["secret_access_key"] = os.environ.get("MINIO_SECRET", "")
    return config


def _endpoint(place: Place) -> str:
    found = place.endpoint or place.options.get("endpoint", "")
    if found and "://" not in found:
        found = f"http{'' if place.options.get('disableSSL') == 'true' else 's'}://{found}"
    return found or os.environ.get("AWS_ENDPOINT_URL", "")


def _client(place: Place) -> Any:
    return {"allow_http": True} if _endpoint(place).startswith("http://") else {}


def _names(store: Any, prefix: str) -> Iterator[str]:
    """The objects whose names begin with a prefix, which may end within a path element."""
    for page in obstore.list(store, prefix.rpartition("/")[0] or None):
        yield from (each["path"] for each in page if each["path"].startswith(prefix))


def _object(store: Any, name: str, url: str) -> Iterator[bytes]:
    with _failing(url):
        for piece in obstore.get(store, name).stream(min_chunk_size=_BLOCK):
            yield bytes(piece)


def _from_disk(place: Place, recursive: bool) -> Iterator[tuple[str, Iterator[bytes]]]:
    root = Path(place.path)
    if not recursive:
        yield "", _read(root, place.url)
        return
    if root.is_file():
        yield "", _read(root, place.url)
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        yield f"/{path.relative_to(root)}", _read(path, place.url)


def _read(path: Path, url: str) -> Iterator[bytes]:
    with _failing(url), path.open("rb") as file:
        while piece := file.read(_BLOCK):
            yield piece


def _fetched(url: str) -> Iterator[bytes]:
    with _failing(url):
        try:
            response = urllib.request.urlopen(url, timeout=_SECONDS)
        except urllib.error.HTTPError as error:
            raise PachError(f'error retrieving content from "{url}": {error.code} {error.reason}') from error
        with response:
            while piece := response.read(_BLOCK):
                yield piece


def _write(target: Path, pieces: Iterable[bytes]) -> None:
    """Writes a file, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _put(store: Any, name: str, pieces: Iterator[bytes]) -> None:
    """Uploads an object: a small one in one request, a large one in parts while reading it."""
    head: list[bytes] = []
    for piece in pieces:
        head.append(piece)
        if sum(map(len, head)) > _SMALL:
            obstore.put(store, name, chain(head, pieces), use_multipart=True, chunk_size=_SMALL)
            return
    obstore.put(store, name, b"".join(head), use_multipart=False)


class _Counted:
    """Passes pieces on and counts their bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            yield piece


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Turns failures to reach a place into errors that name it."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        text = str(error).strip().splitlines()
        raise PachError(f"{what}: {text[0] if text else type(error).__name__}") from error
