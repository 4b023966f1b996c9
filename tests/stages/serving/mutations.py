"""Mutated requests: valid ones of every route, with random damage to their bodies, forms, fields and addresses."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

HOSTILE: Sequence[Any] = (
    *(None, True, False, 0, -1, 1, 10**9, 10**30, 0.5, -0.0, 1e308, [], {}, "", "x", "0" * 64, "../../etc/passwd"),
    *("\x00", "\ud800", "é", "😀", "%s%n", "--5", "nan", "1e999", "' or 1=1 --", "{" * 50, "*" * 50, "[z-a]"),
    *("**/" * 20, "x" * 10_000),
    *("http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://2130706433/", "http://0/"),
    *([0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1e-9, 1e-9], [[[[[[]]]]]], {"upload": 0}, [{"upload": 99}], [{}] * 20),
)
"""Values that programs do not expect."""

PARTS = (
    *("", "/", "//", "..", "%", "%00", "%ff", "%2e%2e%2f", "?", "&", "=", "#", ";", "+", "-", "é", "\n", str(10**30)),
    *("&k=1000", "&k=x", "&limit=7", "&after=p:x", "&source=1", "&box=0,0,1,1"),
)
"""Parts of addresses."""

PARAMETERS = (
    *("k", "top", "metric", "filter", "max_distance", "box", "exact", "text", "without"),
    *("folder", "after", "limit", "source", "download"),
)
"""Parameters of addresses."""

NAMES = (
    *("Content-Type", "Content-Type", "Accept", "Cookie", "Authorization", "Range", "If-None-Match"),
    *("Accept-Encoding", "Content-Encoding", "X-Any"),
)
"""Names of headers."""

VALUES = (
    *("", "x", "application/json", "multipart/form-data", "multipart/form-data; boundary=line", "image/png", "\xe9"),
    "multipart/form-data; boundary=line; charset=utf-7",
    *("text/plain", "image/", "*/*", "null", "0", "a" * 1000, "application/json; charset=utf-16", "gzip", "bytes=0-"),
)
"""Values of headers."""

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True)
class Request:
    """A request. fields: the question in its body, if its body is JSON or has some beside its files."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None
    fields: Any = None
    files: Sequence[bytes] = ()


Write = Callable[[Request], Request]


def mutated(request: Request, chance: random.Random, write: Write) -> Request:
    """The request with one to three kinds of damage. write: makes the body of one from its fields and files."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        request = chance.choice(_KINDS)(request, chance, write)
    return request


def _field(request: Request, chance: random.Random, write: Write) -> Request:
    if request.fields is None:
        return _content(request, chance, write)
    fields = json.loads(json.dumps(request.fields))
    _damage(fields, chance)
    return write(Request(request.method, request.path, request.headers, None, fields, request.files))


def _damage(value: Any, chance: random.Random) -> None:
    """Changes something in a value of JSON."""
    while True:
        places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        inner = [each for each in places if isinstance(value[each], dict | list) and value[each]]
        if inner and chance.random() < 0.6:
            value = value[chance.choice(inner)]
            continue
        if isinstance(value, list):
            value.insert(chance.randrange(len(value) + 1), chance.choice(HOSTILE))
        elif places and chance.random() < 0.7:
            value[chance.choice(places)] = chance.choice(HOSTILE)
        else:
            names = ("k", "id", "url", "box", "metric", "filter", "exact", "text", "without", "pictures", "\x00")
            name = chance.choice(names)
            value[name] = chance.choice(HOSTILE)
        return


def _content(request: Request, chance: random.Random, write: Write) -> Request:
    if request.body is None:
        return _address(request, chance, write)
    body = bytearray(request.body)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, end = sorted(chance.randrange(len(body) + 1) for _ in range(2))
        end = min(end, at + chance.choice((1, 4, 64, 4096)))
        others = (b"\x00", b"\xff", b'"', b"}", b"--line\r\n", b"\r\n\r\n")
        body[at:end] = chance.choice((b"", bytes(body[at:end]) * 2, chance.randbytes(end - at), *others))
    if chance.random() < 0.1:
        del body[chance.randrange(len(body) + 1) :]
    return Request(request.method, request.path, request.headers, bytes(body), None, request.files)


def _address(request: Request, chance: random.Random, write: Write) -> Request:
    """Damages the parameters, or the whole path where there are none."""
    path = list(request.path)
    first = request.path.find("?") + 1 if chance.random() < 0.9 else 1
    for _ in range(chance.choice((1, 2, 4))):
        at, end = sorted(chance.randrange(max(1, min(first, len(path))), len(path) + 1) for _ in range(2))
        path[at : min(end, at + chance.choice((0, 1, 8)))] = chance.choice((*PARTS, chr(chance.randrange(256))))
    text = quote("".join(path), safe=_PRINTABLE)
    return Request(request.method, text, request.headers, request.body, request.fields, request.files)


def _parameter(request: Request, chance: random.Random, write: Write) -> Request:
    """Gives a parameter another value, or another parameter."""
    path, _, text = request.path.partition("?")
    pairs = [tuple(each.partition("=")[::2]) for each in text.split("&") if each]
    names = [name for name, _ in pairs] if pairs and chance.random() < 0.7 else list(PARAMETERS)
    name, value = chance.choice(names), chance.choice(HOSTILE)
    given = value if isinstance(value, str) else json.dumps(value)
    kept = [each for each in pairs if each[0] != name or chance.random() < 0.1]
    query = [f"{known}={text}" for known, text in kept] + [f"{name}={quote(given, errors='replace', safe='')}"]
    return Request(
        request.method, f"{path}?{'&'.join(query)}", request.headers, request.body, request.fields, request.files
    )


def _header(request: Request, chance: random.Random, write: Write) -> Request:
    headers = {**request.headers, chance.choice(NAMES): chance.choice(VALUES)}
    return Request(request.method, request.path, headers, request.body, request.fields, request.files)


def _method(request: Request, chance: random.Random, write: Write) -> Request:
    if chance.random() < 0.8:
        return request
    method = chance.choice(("GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "ODD"))
    return Request(method, request.path, request.headers, request.body, request.fields, request.files)


_KINDS = (*[_field] * 4, *[_content] * 3, *[_parameter] * 3, _address, _header, _method)
