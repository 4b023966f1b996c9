"""The table of 2.12's refusals by itself; `tests/parity` has most rows, as a client sees them."""

import re

import grpc
import pytest

from localpachd.api.doors import later_refusals
from localpachd.api.doors.later_refusals import since_2_12

UNKNOWN, NOT_FOUND = grpc.StatusCode.UNKNOWN, grpc.StatusCode.NOT_FOUND
GONE = f"commit default/a@{'0' * 32} not found"


def test_each_row_names_its_source() -> None:
    for row in later_refusals._CHANGES:
        assert re.fullmatch(r"[\w./]+:\d+(,\d+)*(, [\w./]+:\d+)*", row.source), row


@pytest.mark.parametrize(
    ("call", "code", "text", "later"),
    [
        ("GetFile", NOT_FOUND, GONE, f"get file: pick commit tx: {GONE}\n{GONE}"),
        ("GetFileTAR", NOT_FOUND, GONE, f"pick commit tx: {GONE}\n{GONE}"),
        ("FinishCommit", NOT_FOUND, GONE, f"finish commit in transaction: pick commit tx: {GONE}\n{GONE}"),
        ("SquashCommit", NOT_FOUND, GONE, GONE),
        ("GetFile", NOT_FOUND, "file /a not found in repo default/a at commit b", ""),
        ("InspectRepo", NOT_FOUND, "repo default/ghost not found", ""),
        ("CreatePipeline", UNKNOWN, 'invalid ancestry syntax "a.b", cannot mix . and b characters', ""),
        (
            "StartCommit",
            UNKNOWN,
            "error running request 2 of 2: x",
            "error running request 2 of 2: start commit in transaction: x",
        ),
        ("FinishTransaction", UNKNOWN, "error running request 2 of 2: x", ""),
    ],
)
def test_only_what_a_row_is_about_changes(call: str, code: grpc.StatusCode, text: str, later: str) -> None:
    assert since_2_12(f"pfs_v2.API/{call}", code, text) == (code, later or text)
