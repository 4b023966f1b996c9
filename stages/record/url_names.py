"""The names in the library of pictures at URLs. Only the standard library."""

import hashlib
from urllib.parse import unquote, urlsplit

_DIGITS = 8


def name_of(url: str) -> str:
    """The name of the picture at a URL: its host and path; of one with a query also digits that tell it from others."""
    parts = urlsplit(url)
    names = [each for each in unquote(parts.path, errors="surrogateescape").split("/") if each not in ("", ".", "..")]
    last = names.pop() if names else "index"
    if parts.query:
        stem, dot, ending = last.rpartition(".")
        digits = hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        last = f"{stem or ending}-{digits}{dot}{ending if stem or dot else ''}"
    return "/".join([(parts.hostname or parts.netloc).replace(":", "-"), *names, last]).replace("\0", "")
