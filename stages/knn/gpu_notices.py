"""Lines of the log on a GPU that is there and not used, or not as it was meant: `lookalike status` repeats them.

Only the standard library. Changes no output.
"""

_MARK = "GPU: "


def line(text: str) -> str:
    """The line of the log for a text on the GPU."""
    return f"{_MARK}{text}"


def text(line: str) -> str | None:
    """The text on the GPU in a line of the log; None for any other line."""
    found = line.strip()
    return found.removeprefix(_MARK) if found.startswith(_MARK) else None
