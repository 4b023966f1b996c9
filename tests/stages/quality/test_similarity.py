"""Calibrations read for a service: those that cannot be used are none."""

import json

import pytest

from stages.quality import similarity

FACTS = {"model": "m", "backbone": "", "image_size": 96, "fit": "pad", "metric": "euclidean"}


def test_per_cents_follow_the_knots() -> None:
    found = similarity.read(json.dumps({"knots": [[0, 0.9], [1, 0.1]], "facts": FACTS}).encode())
    assert found is not None
    assert (found.model, found.metric) == ("m", "euclidean")
    assert found.per_cent([0, 1]) == [90.0, 10.0]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, json.dumps({"knots": [[10**400, 1]], "facts": FACTS}).encode(),
     json.dumps({"knots": [], "facts": FACTS}).encode(), json.dumps({"knots": [[1]], "facts": FACTS}).encode()],
)  # fmt: skip
def test_other_files_are_none(content: bytes) -> None:
    assert similarity.read(content) is None
