"""The memory of a card that the libraries of one process share: those used last stay on the card, and others give way.

Without a common account each of many segments takes its share of what is free, until the later ones have to be copied
at every call while the earlier ones lie idle. Knows no card.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

SHARE = 0.6
"""Of the memory of a card that others leave, the most for libraries: searches need the rest."""


class CardLibrary(Protocol):
    """A library that can lie on a card. size: its bytes there. on_card: what it is there, or None."""

    size: int
    on_card: Any

    def load(self) -> None:
        """Copies it to the card. Raises the card's errors."""
        ...

    def unload(self) -> None:
        """Frees its memory on the card, once no search uses it."""
        ...


class CardMemory:
    """The account of one card. May be used from several threads."""

    def __init__(self, free: Callable[[], int], share: float = SHARE) -> None:
        """free: gives the free bytes of the card at the moment."""
        self._free = free
        self._share = share
        self._used: list[weakref.ref[CardLibrary]] = []  # those that may be on the card, last used last
        self._lock = threading.Lock()

    def available(self) -> int:
        """The bytes that are free, or held by libraries of this process."""
        with self._lock:
            return self._free() + sum(each.size for each in self._others(None))

    def use(self, library: CardLibrary) -> Any:
        """What the library is on the card, where it is copied to if it is not there. Those that were used longest ago
        make room for it, and all do if that is still too little. Raises the card's errors."""
        with self._lock:
            others = self._others(library)
            if library.on_card is None:
                held = sum(each.size for each in others)
                limit = self._share * (self._free() + held)
                while others and held + library.size > limit:
                    held -= others[0].size
                    others.pop(0).unload()
                try:
                    library.load()
                except Exception:
                    if not others:
                        raise
                    while others:
                        others.pop().unload()
                    library.load()
            self._used = [weakref.ref(each) for each in (*others, library)]
            return library.on_card

    def _others(self, library: CardLibrary | None) -> list[CardLibrary]:
        found = (each() for each in self._used)
        return [each for each in found if each is not None and each is not library and each.on_card is not None]
