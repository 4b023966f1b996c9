"""The meaning of exit statuses."""

import pytest

from localpachd.worker.commands import outcome


@pytest.mark.parametrize(
    ("code", "accepted", "text"),
    [
        (0, (), ""),
        (3, (), "exit status 3"),
        (3, (3,), ""),
        (-9, (), "signal: killed"),
        (137, (), "signal: killed"),
        (139, (), "signal: segmentation fault"),
        (137, (137,), ""),
        (255, (), "exit status 255"),
    ],
)
def test_outcomes(code: int, accepted: tuple[int, ...], text: str) -> None:
    assert outcome(code, frozenset(accepted)) == text
