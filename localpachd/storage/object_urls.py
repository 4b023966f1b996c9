"""Files outside this server: directories of this machine, object stores, and, read-only, the web. Knows no commits.

URLs are Pachyderm's (`src/internal/obj/factory.go`), with `file:///dir` as another form of `local:///dir`. Credentials
come from the server's environment, in the variables of each provider's own tools (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL,
GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY...) or, where these are not set, in those of Pachyderm's
storage secret (AMAZON_ID, CUSTOM_ENDPOINT, GOOGLE_CRED, MICROSOFT_ID...); for `minio` in MINIO_ID and MINIO_SECRET.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from localpachd.errors import PachError
from localpachd.storage import local_files, web_files
from localpachd.storage.url_reach import UrlReach

WEB = ("http", "https")
_DISK = ("file", "local")
_BLOCK = 1 << 20
_SMALL = 8 << 20
_PART_OF_A_HOST = re.compile(r"[A-Za-z0-9-]*")
# Callers retry later and can report it; the library's own limit is minutes.
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_AMAZON = {"access_key_id": "AMAZON_ID", "secret_access_key": "AMAZON_SECRET", "session_token": "AMAZON_TOKEN"}
_GOOGLE = {"service_account_key": "GOOGLE_CRED"}
_MICROSOFT = {"account_name": "MICROSOFT_ID", "account_key": "MICROSOFT_SECRET"}
"""Pachyderm's variables of credentials."""

_FLAGS = {"disableSSL", "s3ForcePathStyle", "use_path_style"}


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """A parsed URL: an object, or everything below it. On this machine's disk and on the web `bucket` is "" and `path`
    is complete; elsewhere a path has no slash at its ends."""

    url: str
    scheme: str
    bucket: str
    path: str
    account: str = ""
    endpoint: str = ""
    options: dict[str, str] = field(default_factory=dict)


def parse(url: str) -> ObjectUrl:
    """Parses a URL; PachError for one that is not valid, or for a scheme that is not known."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise PachError(f"error parsing url {url}: {error}") from error
    scheme = "gs" if parts.scheme == "gcs" else parts.scheme
    path = parts.path.strip("/")
    options = dict(parse_qsl(parts.query))
    match scheme:
        case "http" | "https":
            return ObjectUrl(url, scheme, "", url)
        case "file" | "local":
            return ObjectUrl(url, scheme, "", _directory(url, parts.netloc, parts.path))
        case "s3" | "gs" | "azblob":
            return ObjectUrl(url, scheme, parts.netloc, path, endpoint=_endpoint(options), options=options)
        case "wasb":
            account = _part_of_a_host(url, (parts.hostname or "").partition(".")[0])
            return ObjectUrl(url, "azblob", parts.username or "", path, account=account)
        case "minio":
            bucket, _, key = path.partition("/")
            secure = os.environ.get("MINIO_SECURE", "").lower() in ("1", "true")
            return ObjectUrl(url, scheme, bucket, key, endpoint=f"http{'s' * secure}://{parts.netloc}")
    raise PachError(f"unrecognized object store: {scheme}")


def check_target(url: str) -> None:
    """Refuses a URL to which no server's `upload` could write."""
    place = parse(url)
    if place.scheme in WEB:
        raise PachError(f"unrecognized object store: {place.scheme}")
    if place.scheme not in _DISK and not place.bucket:
        raise PachError(f"{url} has no bucket")
    with _failing(url):
        _store(place, place.endpoint)


def check_reach(url: str, reach: UrlReach) -> None:
    """Refuses the URL of a directory that this server may not reach. Other URLs are checked when they are used."""
    place = parse(url)
    if place.scheme in _DISK:
        with _failing(url):
            reach.place(place.path, url)


def upload(url: str, files: Iterable[tuple[str, Iterator[bytes]]], reach: UrlReach) -> int:
    """Writes files, each given as its path ("/a/b") and the pieces of its content, below a URL; replaces existing ones.
    Returns the number of bytes. Raises PachError on failure, and any exception of the iterators."""
    place = parse(url)
    check_target(url)
    check_reach(url, reach)
    with _failing(url):
        store = _store(place, _reached(place, reach))
    total = 0

    def counted(pieces: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal total
        for piece in pieces:
            total += len(piece)
            yield piece

    for path, pieces in files:
        with _failing(f"{url}: {path}"):
            if store is None:
                local_files.write(Path(place.path) / path.strip("/"), counted(pieces), url, reach)
            else:
                _put(store, f"{place.path}/{path.strip('/')}".strip("/"), counted(pieces))
    return total


def download(url: str, reach: UrlReach, recursive: bool = False) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of a URL: one file under the name "" or, with `recursive`, every file whose path begins with the URL's,
    under the rest of its path. The web has only single files. Raises PachError."""
    place = parse(url)
    if place.scheme in WEB:
        yield "", _fetched(url, reach)
    elif place.scheme in _DISK:
        yield from _from_disk(place, recursive, reach)
    else:
        with _failing(url):
            store = _store(place, _reached(place, reach))
            names = list(_names(store, place.path)) if recursive else [place.path]
        for name in names:
            yield name.removeprefix(place.path), _object(store, name, url)


def _directory(url: str, host: str, path: str) -> str:
    if host not in ("", "localhost") or not path.startswith("/") or not path.strip("/"):
        raise PachError(f"{url} is not the URL of a directory: write file:///some/directory")
    return path


def _reached(place: ObjectUrl, reach: UrlReach) -> str:
    """The endpoint that a URL names, at an address that this server may reach; "" for none."""
    return reach.endpoint(place.endpoint) if place.endpoint else ""


def _endpoint(options: Mapping[str, str]) -> str:
    """The endpoint that the parameters of a URL name, "" for none."""
    found = options.get("endpoint", "")
    if found and "://" not in found:
        found = f"http{'' if options.get('disableSSL') == 'true' else 's'}://{found}"
    return found


def _part_of_a_host(url: str, text: str) -> str:
    """A word of a URL that becomes a part of a host's name, and could otherwise name another host."""
    if not _PART_OF_A_HOST.fullmatch(text):
        raise PachError(f"{url}: {text} is not the name of a region or an account")
    return text


def _store(place: ObjectUrl, endpoint: str) -> Any:
    """The library's store for a bucket at the endpoint that the URL names, if any; None for this machine's disk."""
    match place.scheme:
        case "s3" | "minio":
            at = endpoint or _variable("AWS_ENDPOINT_URL", "CUSTOM_ENDPOINT")
            client: Any = {"allow_http": True} if at.startswith("http://") else {}
            return S3Store(place.bucket, config=_s3_config(place, at), client_options=client, retry_config=_RETRY)
        case "gs":
            key: Any = {} if "GOOGLE_APPLICATION_CREDENTIALS" in os.environ else _set(_GOOGLE)
            return GCSStore(place.bucket, config=key, retry_config=_RETRY)
        case "azblob":
            return AzureStore(place.bucket, config=_azure_config(place), retry_config=_RETRY)
    return None


def _azure_config(place: ObjectUrl) -> Any:
    config = {} if "AZURE_STORAGE_ACCOUNT_NAME" in os.environ else _set(_MICROSOFT)
    return config | ({"account_name": place.account} if place.account else {})


def _set(variables: Mapping[str, str]) -> dict[str, str]:
    """The values of those of these variables that are set."""
    return {name: value for name, variable in variables.items() if (value := os.environ.get(variable))}


def _variable(*names: str) -> str:
    """The first of these variables that is set, "" for none."""
    return next((value for name in names if (value := os.environ.get(name))), "")


def _s3_config(place: ObjectUrl, endpoint: str) -> Any:
    options = place.options
    unknown = set(options) - {"region", "endpoint"} - _FLAGS
    if unknown:
        raise PachError(f"{place.url}: unknown parameters {', '.join(sorted(unknown))}; known: endpoint, region")
    config: dict[str, str] = {}
    own = _variable("AWS_REGION", "AWS_DEFAULT_REGION", "AMAZON_REGION") or "us-east-1"
    config["region"] = _part_of_a_host(place.url, options.get("region", "")) or own
    if endpoint:
        config["endpoint"] = endpoint
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        config |= _set(_AMAZON)
    if place.scheme == "minio" and "MINIO_ID" in os.environ:
        config["access_key_id"] = os.environ["MINIO_ID"]
        config["secret_access_key"] = os.environ.get("MINIO_SECRET", "")
    return config


def _names(store: Any, prefix: str) -> Iterator[str]:
    """The objects whose names begin with a prefix, which may end within a path element."""
    for page in obstore.list(store, prefix.rpartition("/")[0] or None):
        yield from (each["path"] for each in page if each["path"].startswith(prefix))


def _object(store: Any, name: str, url: str) -> Iterator[bytes]:
    with _failing(url):
        for piece in obstore.get(store, name).stream(min_chunk_size=_BLOCK):
            yield bytes(piece)


def _from_disk(place: ObjectUrl, recursive: bool, reach: UrlReach) -> Iterator[tuple[str, Iterator[bytes]]]:
    root = Path(place.path)
    if not recursive:
        yield "", _read(root, place.url, reach)
        return
    _, real = reach.place(root, place.url)
    if real.is_file():
        yield "", _read(real, place.url, reach)
    for path in local_files.below(root, place.url, reach):
        yield f"/{path.relative_to(real)}", _read(path, place.url, reach)


def _read(path: Path, url: str, reach: UrlReach) -> Iterator[bytes]:
    with _failing(url):
        yield from local_files.read(path, url, reach)


def _fetched(url: str, reach: UrlReach) -> Iterator[bytes]:
    try:
        with _failing(url):
            yield from web_files.get(url, reach)
    except PachError as error:
        if isinstance(error.__cause__, web_files.HttpError):
            raise PachError(f'error retrieving content from "{url}": {error.__cause__}') from error
        raise


def _put(store: Any, name: str, pieces: Iterator[bytes]) -> None:
    """Uploads an object: a small one in one request, a large one in parts while reading it."""
    head: list[bytes] = []
    for piece in pieces:
        head.append(piece)
        if sum(map(len, head)) > _SMALL:
            obstore.put(store, name, chain(head, pieces), use_multipart=True, chunk_size=_SMALL)
            return
    obstore.put(store, name, b"".join(head), use_multipart=False)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Turns failures to reach a place into errors that name it."""
    try:
        yield
    except (BaseError, OSError, ValueError, HTTPException) as error:
        text = str(error).strip().splitlines()
        raise PachError(f"{what}: {text[0] if text else type(error).__name__}") from error
