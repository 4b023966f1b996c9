"""Splitting pieces of any size into chunks: nothing is lost, only short pieces are copied, and parts are few."""

import random
from collections.abc import Iterator

from hypothesis import given, settings, strategies as st

from localpachd.ids import CHUNK_SIZE
from localpachd.storage import chunk_splitter
from tests.example_counts import examples

SHORT = 64 << 10
NOISE = random.Random(0).randbytes(2 * CHUNK_SIZE + SHORT)
LENGTHS = st.sampled_from(
    [0, 1, 300, SHORT - 1, SHORT, 1 << 20, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, len(NOISE)]
)


@settings(max_examples=examples(50))
@given(st.lists(LENGTHS, max_size=4), st.integers(0, SHORT))
def test_the_chunks_of_any_pieces(lengths: list[int], start: int) -> None:
    pieces = [NOISE[start : start + length] for length in lengths]
    chunks = [b"".join(parts) for parts in chunk_splitter.split(pieces)]
    whole = b"".join(pieces)
    assert chunks == [whole[at : at + CHUNK_SIZE] for at in range(0, len(whole), CHUNK_SIZE)]


def test_long_pieces_are_not_copied() -> None:
    pieces = [NOISE[:SHORT], NOISE[SHORT : 4 * SHORT]]
    ((first, second),) = chunk_splitter.split(pieces)
    assert isinstance(first, memoryview) and first.obj is pieces[0]
    assert isinstance(second, memoryview) and second.obj is pieces[1]


def test_short_pieces_are_joined() -> None:
    short = [NOISE[at : at + 1] for at in range(1000)]
    assert list(chunk_splitter.split([*short, NOISE[:SHORT], *short])) == [[NOISE[:1000], NOISE[:SHORT], NOISE[:1000]]]


def test_a_chunk_is_yielded_before_more_pieces_are_read() -> None:
    asked = []

    def pieces() -> Iterator[bytes]:
        for number in range(20):
            asked.append(number)
            yield NOISE[: 1 << 20]

    chunks = chunk_splitter.split(pieces())
    next(chunks)
    assert len(asked) == CHUNK_SIZE >> 20
