"""A running command, in whatever backend, and the meaning of its exit status. Starts nothing."""

import signal
from typing import Protocol

_QUOTED = 300  # characters of a process's last line that go into a reason


class CommandProcess(Protocol):
    """A command that was started, in whatever backend.

    `returncode` is None while it runs and then as subprocess gives it. `last_line` is the last line of its output, and
    `refusal` the reason why it never began, where that shows only afterwards, or why it was not let go on.
    """

    returncode: int | None

    @property
    def last_line(self) -> str: ...

    @property
    def refusal(self) -> str: ...

    @property
    def ended(self) -> bool:
        """Whether the process has ended and all of its output has been passed on."""

    @property
    def held(self) -> int:
        """The bytes of memory that the process holds with its descendants; 0 where nobody counts them."""

    def catch_up(self) -> None:
        """Passes on the output that has arrived so far, before this returns."""

    def stop(self) -> None:
        """Kills the process and everything that it started, if they are still running, and returns when they are gone.

        The last output of a process that is killed is not passed on. Raises what passing on its lines raised.
        """


def outcome(returncode: int, accepted: frozenset[int]) -> str:
    """The reason why an exit status (as subprocess gives it) counts as a failure, in Go's words; "" if it does not."""
    code = returncode if returncode >= 0 else 128 - returncode
    if code == 0 or code in accepted:
        return ""
    # A shell in between reports a death by signal as 128 + the signal's number.
    name = signal.strsignal(code - 128) if 128 < code < 128 + signal.NSIG else None
    return f"exit status {code}" if name is None else f"signal: {name.lower()}"


def failure_reason(process: CommandProcess, accepted: frozenset[int]) -> str:
    """The reason why the end of a process counts as a failure; "" if it does not."""
    assert process.returncode is not None
    return process.refusal or outcome(process.returncode, accepted)


def describe_end(process: CommandProcess) -> str:
    """The way a process ended, with its last line of output, which usually says why."""
    assert process.returncode is not None
    if process.refusal:
        return process.refusal
    status = outcome(process.returncode, frozenset()) or "exit status 0"
    return f"{status}: {process.last_line[:_QUOTED]}" if process.last_line else status
