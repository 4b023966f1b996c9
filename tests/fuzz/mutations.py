"""Random changes of bytes, reproducible by a seed. Knows no format."""

import random
from collections.abc import Iterator, Sequence

_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_MOST_CHANGES = 4


def mutations(seeds: Sequence[bytes], words: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """So many inputs, each made from one of the seeds by a few changes."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, _MOST_CHANGES)):
            _change(data, seeds, words, chance)
        yield bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    length = chance.choice((1, 2, 4, 8, 32))
    match chance.randrange(7 if words else 6):
        case 0 if at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at : at + length]
        case 2:
            data[at:at] = chance.randbytes(length)
        case 3:
            size = chance.choice((1, 2, 4))
            number = chance.choice(_INTERESTING) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, chance.choice(("little", "big")))
        case 4:
            data[at:at] = data[at : at + length] * chance.choice((1, 3, 50))
        case 5:
            other = chance.choice(seeds)
            begin = chance.randrange(len(other) + 1)
            data[at : at + length] = other[begin : begin + length]
        case 6:
            data[at:at] = chance.choice(words)
