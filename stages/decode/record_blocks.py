"""Records of STL-10 normalised in blocks, which takes an eighth less time than one by one. Reads no files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from stages.decode import picture_normaliser, stl10_records
from stages.decode.picture_normaliser import NormalisedPicture
from stages.record.framing import Framing

_MOST = 16  # records of a block
_BYTES = 4 << 20  # of a block's squares; a single one may be larger


class RecordBlocks:
    """Gathers the records that are added one after the other, of any number of files."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._most = min(_MOST, max(1, _BYTES // (3 * framing.side**2)))
        self._block = _Block(framing)

    def add(self, record: bytes) -> Callable[[], NormalisedPicture]:
        """What gives the picture of a record, which is normalised with those next to it when one of them is asked
        for."""
        if self._block.found or len(self._block.records) == self._most:
            self._block = _Block(self._framing)
        self._block.records.append(record)
        return partial(self._block.picture, len(self._block.records) - 1)


@dataclass
class _Block:
    framing: Framing
    records: list[bytes] = field(default_factory=list)
    found: list[NormalisedPicture] = field(default_factory=list)

    def picture(self, row: int) -> NormalisedPicture:
        if not self.found:
            self.found = picture_normaliser.reframe(stl10_records.upright(b"".join(self.records)), self.framing)
            self.records.clear()
        return self.found[row]
