"""Short texts that users and clients write: JSON, quantities, filters of replies, schedules, URLs of
object stores, paths in a repo, names of files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localpachd.api.messages.protojson import compile_filter
from localpachd.errors import PachError
from localpachd.pfs import cron_schedules
from localpachd.storage import object_urls, paths
from localpachd.storage.url_reach import UrlReach
from speclang import quantities, strict_json
from speclang.strict_json import JSONDecodeError
from stages.record import pfs_names
from tests.fuzz.target import Target, text

_NOW = 1_767_225_600_000_000_000
_REACH = UrlReach((Path("/tmp"),))
_MESSAGE = {"state": "JOB_FAILURE", "job": {"id": "0f", "pipeline": {"name": "copy"}}, "restarts": 3, "stats": None}


class _Twice(Exception):
    """An object that gives a name twice, which the standard library accepts."""


def _json(data: bytes) -> None:
    """What both readers accept has the same value; what only the standard library accepts has a name twice, NaN, or is
    nested deeply."""
    given = text(data)
    try:
        found = strict_json.parse(given)
    except JSONDecodeError as error:
        assert 0 <= error.pos <= len(given)
        if not str(error).startswith("it is nested too deeply"):
            assert not _accepted(given), f"refused: {error}"
        return
    assert repr(found.value) == repr(json.loads(given))
    assert all(1 <= line <= given.count("\n") + 1 for line in found.lines.values())


def _accepted(given: str) -> bool:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in members}) < len(members):
            raise _Twice
        return dict(members)

    def constant(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(given, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError, _Twice):
        return False
    return True


def _quantity(data: bytes) -> None:
    found = quantities.parse(text(data))
    assert found is None or found.denominator <= 10**9


def _filter(data: bytes) -> None:
    try:
        compile_filter(text(data))(_MESSAGE)
    except PachError:
        return


def _schedule(data: bytes) -> None:
    """The next point lies ahead, and is reached by no step from the one before."""
    try:
        schedule = cron_schedules.parse(text(data))
    except PachError as reason:
        assert str(reason)
        return
    found = schedule.next(_NOW)
    assert found is None or found > _NOW
    schedule.is_ahead(_NOW + (1 << 40), _NOW)


def _store(data: bytes) -> None:
    try:
        object_urls.check_reach(text(data), _REACH)
    except PachError as reason:
        assert str(reason)


def _path(data: bytes) -> None:
    given = text(data)
    try:
        paths.validate(given)
    except PachError as reason:
        assert str(reason)


def _name(data: bytes) -> None:
    given = text(data)
    for escaped in (pfs_names.escape_path(given), pfs_names.escape_component(given)):
        assert pfs_names.unescape(escaped) == given
        assert escaped.isascii()
        assert escaped.isprintable()
        assert all(0 < len(part) <= pfs_names.LONGEST_COMPONENT and part.strip(".") for part in escaped.split("/"))
    pfs_names.unescape(given)
    pfs_names.is_system_file(given)


def _jsons() -> Iterator[bytes]:
    yield from (b'{"a": [1, -2.5e3, true, null], "b": {"c": "d\\u00e9\\n"}}', b"[]", b' "x" ', b"\n{\n}\n", b"-0.1")


def _filters() -> Iterator[bytes]:
    yield b'.state == "JOB_FAILURE" or .state == "JOB_KILLED"'
    yield b'.job.pipeline.name == "copy" and (.restarts != 3 or .stats == null)'
    yield from (b".", b"true", b'(.a.b == "\\"x")')


TARGETS = (
    Target(
        "schedules",
        _schedule,
        lambda: (b"*/5 0-3 1,15 jan-jun mon", b"@every 1h30m", b"@daily", b"@never", b"0 0 29 2 ?"),
        (b"@every ", b"*/", b"-", b",", b"?", b"sun", b"dec", b"31", b"1.5s", b"7", b"L", b"#", b"9" * 60, b"1" * 4400),
        5000,
    ),
    Target(
        "stores",
        _store,
        lambda: (b"s3://bucket/a?region=x", b"wasb://c@a.b/d", b"minio://h:9/b/k", b"file:///tmp/a", b"gs://b"),
        (b"://", b"[", b"]", b"@", b"?endpoint=http://", b"&", b"%00", b"..", b"local"),
        200,
    ),
    Target("paths", _path, lambda: (b"/a/b.txt", b"a//b/", b"/..", b"/x*"), (b"/", b"..", b"*", b"%"), 300),
    Target("json", _json, _jsons, (b'{"', b'":', b"[", b"]", b"}", b",", b"\\u", b"1e", b"NaN"), 600),
    Target("quantities", _quantity, lambda: (b"512Mi", b"1.5e3", b"-2k", b"+.5n", b"100m", b"8E", b"1Ei")),
    Target("filters", _filter, _filters, (b"==", b"!=", b" and ", b" or ", b"(", b")", b".job", b"null"), 400),
    Target(
        "names",
        _name,
        lambda: (b"a/b.jpg", b"../x", b"%41%", b"caf\xc3\xa9/\xff", b"a" * 260, b"%void", b".a//b/", b"[x]*?"),
        (b"%", b"%2F", b"..", b"/", b"%void", b"\xed\xa0\x80"),
        700,
    ),
)
