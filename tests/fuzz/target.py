"""A target of fuzzing: a function of bytes, and the real inputs that fuzzing starts from. Knows no code under test."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Code under test. `run` returns whatever the code makes of the bytes, also when that is its documented error; any
    exception that it raises is a fault. `seeds` makes small valid inputs, the same ones each time. `words` are texts
    that inputs often contain. `longest` is the size of the largest input, in bytes."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    words: Sequence[bytes] = ()
    longest: int = 4096


def text(data: bytes) -> str:
    """Bytes as a text, whatever they are: those that are not UTF-8 become lone surrogates, as in names of files."""
    return data.decode("utf-8", "surrogateescape")
