"""Pipeline specifications in JSON: read by localpachd, and checked by `lookalike check`, which must agree on names and
types."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from localpachd.api.messages.spec_reader import SpecReader
from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.specs import spec
from localpachd.storage.chunk_store import ChunkStore
from pipelines.checks import suite
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts
from pipelines.specifications.findings import FlawLevel
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target, text

_SPECS = Path(__file__).parents[3] / "specs"
_NOW = 1_767_225_600_000_000_000


@cache
def _specs() -> SpecReader:
    root = scratch() / "specs"
    root.mkdir()
    return SpecReader(PfsService(Database(root / "db.sqlite"), ChunkStore(root / "chunks")))


def _server(data: bytes) -> None:
    try:
        merged = _specs().merge(text(data), {}, {})
        merged.effective_message()
        spec.parse(merged.request(False, False), _NOW)
    except PachError as reason:
        assert str(reason)


def _defaults(data: bytes) -> None:
    try:
        _specs().read_defaults(text(data))
    except PachError as reason:
        assert str(reason)


def _check(data: bytes) -> None:
    """What the command finds no error in, the server can read."""
    path = scratch() / "spec.json"
    path.write_bytes(data)
    try:
        draft = drafts.read(path)
    except LookalikeError as reason:
        assert str(reason)
        return
    report = suite.check([draft])
    json.loads(report.as_json())
    if not report.count(FlawLevel.ERROR):
        _specs().read(data.decode())


def _seeds() -> Iterator[bytes]:
    for path in sorted(_SPECS.glob("*.json"))[::3]:
        yield json.dumps(json.loads(path.read_text())).encode()
    yield json.dumps(
        {
            "pipeline": {"name": "p", "project": {"name": "q"}},
            "transform": {"cmd": ["sh"], "stdin": ["true"], "env": {"A": "b"}, "secrets": [{"name": "s", "key": "k"}]},
            "input": {
                "join": [
                    {"pfs": {"repo": "a", "glob": "/(*)", "joinOn": "$1", "outerJoin": True}},
                    {"cron": {"name": "tick", "spec": "@every 60s", "start": "2026-01-31T12:00:00Z"}},
                ]
            },
            "parallelismSpec": {"constant": "2"},
            "resourceRequests": {"memory": "1Gi", "cpu": 0.5},
            "datumTimeout": "90s",
            "tolerations": [{"operator": "EQUAL", "tolerationSeconds": 3}],
            "podPatch": '[{"op": "add", "path": "/a", "value": 1}]',
        }
    ).encode()


_WORDS = tuple(
    each.encode()
    for each in (
        *('"pipeline"', '"transform"', '"input"', '"pfs"', '"cross"', '"join"', '"group"', '"cron"', '"spout"'),
        *('"service"', '"egress"', '"podSpec"', '"podPatch"', '"env"', '"glob"', '"name"', '"repo"', '"s3"', '"lazy"'),
        *('"resourceLimits"', '"gpu"', '"parallelism_spec"', '"joinOn"', '"$1"', '"/(*)"', '"1e400"', '"-1s"'),
        *("null", "{}", "[]", "[[]]", "1e999", "-1", "true", '""', '"\\ud800"', '"\\u0000"', '{"":'),
    )
)

TARGETS = (
    Target("specs", _server, _seeds, _WORDS, 2000),
    Target("defaults", _defaults, lambda: (b'{"createPipelineRequest": {"datumTries": "2"}}', b"{}"), _WORDS, 600),
    Target("checks", _check, _seeds, _WORDS, 2000),
)
