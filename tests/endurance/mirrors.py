"""The state that a server has acknowledged to one writer. Knows neither repos nor calls."""

import contextlib
from collections.abc import Iterator
from typing import Generic, TypeVar

State = TypeVar("State")


class Mirror(Generic[State]):
    """What one writer has been told is stored. A call that got no answer leaves two possibilities: the state before and
    the one after. `acknowledged` counts the answers."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.acknowledged = 0
        self._after: State | None = None

    @contextlib.contextmanager
    def becoming(self, after: State) -> Iterator[None]:
        """Around a call that leads to another state. An exception leaves both possible."""
        self._after = after
        yield
        self.state, self._after = after, None
        self.acknowledged += 1

    def settle(self, found: State) -> bool:
        """Whether a state is the acknowledged one or that of a call without an answer. From now on it is the state."""
        fits = found == self.state or (self._after is not None and found == self._after)
        self.state, self._after = found, None
        return fits
