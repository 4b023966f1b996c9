"""The annotations by which a pipeline asks localpachd to keep its batching processes between datum sets.

They stand in `metadata.annotations` of a specification. On a cluster they end up on pods, where nobody reads them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from speclang import quantities

SECONDS = "localpachd/warm-seconds"
"""The annotation with the longest time that a process waits for its next datum set."""
MEMORY = "localpachd/warm-memory"
"""The annotation with the most memory that a waiting process may hold."""

LONGEST = 86_400
_DEFAULT_MEMORY = "1Gi"


@dataclass(frozen=True, slots=True)
class WarmSettings:
    """The wish of a pipeline: `seconds` that a process may wait, `memory` in bytes that it may hold meanwhile."""

    seconds: int
    memory: int


@dataclass(frozen=True, slots=True)
class AnnotationFault:
    """An annotation with a value that is not valid: `why` and `fix` are phrases."""

    key: str
    why: str
    fix: str


def faults(annotations: Mapping[str, str]) -> Iterator[AnnotationFault]:
    """The annotations that do not say what they should."""
    seconds, memory = annotations.get(SECONDS), annotations.get(MEMORY)
    if seconds is not None and _seconds(seconds) is None:
        why = f'"{seconds}" is not a whole number of seconds from 0 to {LONGEST}'
        yield AnnotationFault(SECONDS, why, 'write a text such as "600", or "0" to keep no process')
    if memory is not None and not _bytes(memory):
        yield AnnotationFault(
            MEMORY, f'"{memory}" is not a valid quantity of memory above 0', 'write a text such as "1Gi"'
        )
    if memory is not None and seconds is None:
        yield AnnotationFault(MEMORY, f"has no effect without {SECONDS}", f"add {SECONDS}, or remove it")


def read(annotations: Mapping[str, str]) -> WarmSettings | None:
    """The wish that annotations express, None for none. Those with a fault express none."""
    seconds = _seconds(annotations.get(SECONDS, "0"))
    memory = _bytes(annotations.get(MEMORY, _DEFAULT_MEMORY))
    return WarmSettings(seconds, memory) if seconds and memory else None


def _seconds(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(LONGEST)):
        return None
    return int(text) if int(text) <= LONGEST else None


def _bytes(text: str) -> int:
    """The bytes of a quantity; 0 for what is not one, or is not positive."""
    found = quantities.parse(text)
    return math.ceil(found) if found and found > 0 else 0
