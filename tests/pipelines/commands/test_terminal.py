"""Lines printed after Ctrl-C."""

import io
import sys

import pytest
from rich.console import Console

from pipelines.commands import terminal


class Interrupted(io.StringIO):
    """A standard output on which Ctrl-C is pressed once, just after the first text has been written."""

    pressed = False

    def flush(self) -> None:
        if not self.pressed and self.getvalue():
            self.pressed = True
            raise KeyboardInterrupt


def test_a_line_that_was_interrupted_is_not_printed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Interrupted()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(terminal, "console", Console())
    with pytest.raises(KeyboardInterrupt):
        terminal.say("waiting")
    terminal.say_interrupted("no longer waiting")
    assert output.getvalue() == "waiting\nno longer waiting\n"
