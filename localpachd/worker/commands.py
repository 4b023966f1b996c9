"""A command that was started, wherever it runs, and how its end is judged. Starts nothing."""

import signal
from typing import Protocol

_QUOTED = 300  # characters of a process's last line that go into a reason


class Process(Protocol):
    """A command that was started, wherever it runs.

    `returncode` is None while it runs and then as subprocess gives it, `last_line` the last thing that it said, and
    `refusal` why it never began, where that shows only afterwards.
    """

    returncode: int | None

    @property
    def last_line(self) -> str: ...

    @property
    def refusal(self) -> str: ...

    @property
    def ended(self) -> bool:
        """Whether the process has ended and everything it had written has been passed on."""

    def catch_up(self) -> None:
        """Passes on what the process has written until now, as far as it has arrived, before this returns."""

    def stop(self) -> None:
        """Kills the process and everything it started, if they still run, and returns when they are gone.

        What a process says that dies of this is not passed on. Raises what passing on its lines raised.
        """


def outcome(returncode: int, accepted: frozenset[int]) -> str:
    """Why an exit status (as subprocess gives it) counts as a failure, in Go's words; "" when it does not."""
    code = returncode if returncode >= 0 else 128 - returncode
    if code == 0 or code in accepted:
        return ""
    # A shell in between reports the death by a signal as 128 + its number.
    name = signal.strsignal(code - 128) if 128 < code < 128 + signal.NSIG else None
    return f"exit status {code}" if name is None else f"signal: {name.lower()}"


def judged(process: Process, accepted: frozenset[int]) -> str:
    """Why the way in which a process ended counts as a failure; "" when it does not."""
    assert process.returncode is not None
    return process.refusal or outcome(process.returncode, accepted)


def how(process: Process) -> str:
    """How a process ended, and the last thing it said, which as a rule is why."""
    assert process.returncode is not None
    if process.refusal:
        return process.refusal
    status = outcome(process.returncode, frozenset()) or "exit status 0"
    return f"{status}: {process.last_line[:_QUOTED]}" if process.last_line else status
