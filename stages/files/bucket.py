"""Buckets of S3, Google and Azure by URL, and directories of this machine in their place. Knows nothing of what they
hold.

Credentials come from the environment, in the variables of each provider's own tools.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

from stages.datum.text_format import first_line

FAILURES = (BaseError, OSError)
"""What calls of a bucket raise."""

# The library's own limit is minutes, and whoever asks tries again or reports it.
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}


class BadUrl(ValueError):
    """A URL that can never name a bucket; the text says why."""


class BucketError(Exception):
    """A bucket that cannot be used, as for credentials that are not in the environment, or are damaged."""


def open_bucket(url: str) -> Any:
    """The bucket, or the directory in it, that a URL names: s3://, gs://, az:// or file:///. Objects appear once all of
    their bytes are there. Raises BadUrl, and BucketError."""
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise BadUrl(f"{url} is not the URL of a bucket: remove what follows its path")
    path = unquote(parts.path)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not path.strip("/"):
            raise BadUrl(f"{url} is not the URL of a directory: write file:///some/directory")
    elif not parts.netloc:
        raise BadUrl(f"{url} has no bucket: write {parts.scheme}://bucket/directory")
    prefix: Any = {"prefix": path.strip("/") or None, "retry_config": _RETRY}
    try:
        match parts.scheme:
            case "file":
                return LocalStore(path, mkdir=True)
            case "s3":
                return S3Store(parts.netloc, config=_s3(), client_options=_s3_client(), **prefix)
            case "gs":
                return GCSStore(parts.netloc, **prefix)
            case "az":
                return AzureStore(parts.netloc, **prefix)
    except FAILURES as error:
        raise BucketError(f"its bucket cannot be used: {first_line(error)}") from error
    raise BadUrl(f"{url} is not the URL of a bucket: it begins with s3://, gs://, az:// or file:///")


def _s3() -> Any:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return {"region": region or "us-east-1"}


def _s3_client() -> Any:
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")  # MinIO inside of a cluster
    return {"allow_http": True} if plain else {}
