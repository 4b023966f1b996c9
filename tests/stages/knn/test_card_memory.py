"""The libraries of a process share a card: who stays there, who gives way, and a card that is nearly full."""

from __future__ import annotations

import gc
import threading

import pytest
from hypothesis import given, strategies as st

from stages.knn.card_memory import CardMemory


class Card:
    """A card with so much memory, of which others hold some."""

    def __init__(self, total: int, others: int = 0) -> None:
        self.total, self.others = total, others
        self.held: dict[int, int] = {}

    def free(self) -> int:
        return self.total - self.others - sum(self.held.values())


class Library:
    """A library that is copied to a card, and counts its copies."""

    def __init__(self, card: Card, size: int) -> None:
        self.card, self.size = card, size
        self.on_card: object | None = None
        self.copies = 0

    def load(self) -> None:
        if self.size > self.card.free():
            raise MemoryError("std::bad_alloc")
        self.card.held[id(self)] = self.size
        self.copies += 1
        self.on_card = object()

    def unload(self) -> None:
        del self.card.held[id(self)]
        self.on_card = None

    def __del__(self) -> None:
        self.card.held.pop(id(self), None)


def test_libraries_that_fit_together_are_copied_once() -> None:
    card = Card(1000)
    memory, libraries = CardMemory(card.free, 0.6), [Library(card, 150) for _ in range(4)]
    for _ in range(3):
        for each in libraries:
            assert memory.use(each) is each.on_card is not None
    assert [each.copies for each in libraries] == [1] * 4
    assert memory.available() == 1000


def test_the_one_that_was_used_longest_ago_gives_way() -> None:
    card = Card(1000)
    memory, (first, second, third) = CardMemory(card.free, 0.6), [Library(card, 250) for _ in range(3)]
    for each in (first, second, first, third):
        memory.use(each)
    assert [each.on_card is None for each in (first, second, third)] == [False, True, False]


def test_libraries_that_are_gone_hold_nothing() -> None:
    card = Card(1000)
    memory = CardMemory(card.free, 0.6)
    memory.use(Library(card, 500))
    gc.collect()
    kept = Library(card, 500)
    memory.use(kept)
    assert memory.available() == 1000


def test_on_a_card_that_fills_up_meanwhile_all_others_give_way() -> None:
    card = Card(1000)
    memory, (first, second) = CardMemory(card.free, 1), [Library(card, 300) for _ in range(2)]
    memory.use(first)
    card.others = 600  # 100 are free, but 400 count
    memory.use(second)
    assert first.on_card is None
    card.others = 900
    with pytest.raises(MemoryError):
        memory.use(first)
    assert memory.available() == 100


@given(st.lists(st.integers(1, 600), min_size=1, max_size=6), st.lists(st.integers(0, 5), max_size=30))
def test_the_share_is_never_exceeded_and_the_one_in_use_is_there(sizes: list[int], uses: list[int]) -> None:
    card = Card(1000)
    memory, libraries = CardMemory(card.free, 0.6), [Library(card, size) for size in sizes]
    for use in uses:
        library = libraries[use % len(libraries)]
        assert memory.use(library) is library.on_card is not None
        assert sum(card.held.values()) <= max(600, library.size)


def test_threads_that_compete_find_their_library_on_the_card() -> None:
    card = Card(1000)
    memory, libraries = CardMemory(card.free, 0.6), [Library(card, 400) for _ in range(4)]
    found: list[object] = []

    def search(library: Library) -> None:
        found.extend(memory.use(library) for _ in range(200))

    threads = [threading.Thread(target=search, args=(each,)) for each in libraries]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 800 and None not in found
    assert sum(card.held.values()) <= 600
