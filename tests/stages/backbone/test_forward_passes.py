"""Forward passes of full batches and of a few pictures: the vectors never depend on which of them ran."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from stages.backbone.forward_passes import FEW, TRYING, ForwardPasses, even

BATCH = 32


class Counted:
    """A forward pass of one shape that notes how often it ran. moved: the last picture of a batch gets other bits."""

    def __init__(self, batch: int, moved: bool = False) -> None:
        self.batch = batch
        self.moved = moved
        self.ran = 0

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        assert pictures.shape == (self.batch, 2, 2, 3) and pictures.dtype == np.uint8
        self.ran += 1
        vectors = expected(pictures)
        vectors[-1, 0] += np.float32(0.5 if self.moved else 0)
        return vectors


def expected(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    return pictures.reshape(len(pictures), 12).astype(np.float32)


def noise(count: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 2, 2, 3), np.uint8)


def tried() -> None:
    """Waits for threads that try the small pass."""
    for each in threading.enumerate():
        if each.name == TRYING:
            each.join(60)


@given(st.lists(st.integers(1, BATCH), max_size=8), st.booleans(), st.booleans(), st.booleans())
def test_vectors_do_not_depend_on_the_passes(counts: list[int], has_small: bool, moved: bool, ahead: bool) -> None:
    full, small = Counted(BATCH), Counted(FEW, moved)
    passes = ForwardPasses(full, BATCH, small if has_small else None, ahead)
    for seed, count in enumerate(counts):
        np.testing.assert_array_equal(passes(noise(count, seed)), expected(noise(count, seed)))


def test_the_second_call_tries_the_small_pass_and_later_ones_take_it() -> None:
    full, small = Counted(BATCH), Counted(FEW)
    passes = ForwardPasses(full, BATCH, small)
    ran = []
    for count in (3, 3, 3, 8, 9, 24, 25, 32):
        before = full.ran, small.ran
        passes(noise(count))
        ran.append((full.ran - before[0], small.ran - before[1]))
    assert ran == [(1, 0), (0, 3), (0, 1), (0, 1), (0, 2), (0, 3), (0, 4), (0, 4)]


def test_a_thread_tries_the_small_pass_before_the_second_call() -> None:
    full, small = Counted(BATCH), Counted(FEW)
    passes = ForwardPasses(full, BATCH, small, ahead=True)
    passes(noise(3))
    tried()
    assert (full.ran, small.ran) == (1, 2)
    passes(noise(3))
    assert (full.ran, small.ran) == (1, 3)


def test_an_error_of_that_thread_is_one_of_the_second_call(capfd: pytest.CaptureFixture[str]) -> None:
    def failing(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        raise RuntimeError("out of memory")

    passes = ForwardPasses(Counted(BATCH), BATCH, failing, ahead=True)
    passes(noise(3))
    tried()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(RuntimeError, match="out of memory"):
        passes(noise(3))


def test_warming_up_tries_the_small_pass_at_once() -> None:
    full, small = Counted(BATCH), Counted(FEW)
    passes = ForwardPasses(full, BATCH, small)
    passes.warm_up(noise(1)[0])
    assert (full.ran, small.ran) == (1, 2)
    passes(noise(1))
    assert (full.ran, small.ran) == (1, 3)


def test_small_passes_that_give_other_bits_are_not_used(capsys: pytest.CaptureFixture[str]) -> None:
    full, small = Counted(BATCH), Counted(FEW, moved=True)
    passes = ForwardPasses(full, BATCH, small)
    for _ in range(5):
        passes(noise(1))
    assert (full.ran, small.ran) == (5, 1)
    assert capsys.readouterr().out == "forward passes of 8 pictures give other bits than passes of 32 here: not used\n"


def test_small_passes_whose_bits_depend_on_the_place_are_not_used() -> None:
    full, small = Counted(BATCH, moved=True), Counted(FEW, moved=True)
    passes = ForwardPasses(full, BATCH, small)
    for _ in range(3):
        np.testing.assert_array_equal(passes(noise(FEW)), expected(noise(FEW)))
    assert (full.ran, small.ran) == (3, 2)


def test_full_passes_alone_have_nothing_to_try() -> None:
    for passes in (ForwardPasses(Counted(BATCH), BATCH), ForwardPasses(Counted(FEW), FEW, Counted(FEW))):
        passes.warm_up(noise(1)[0])
        for _ in range(3):
            np.testing.assert_array_equal(passes(noise(2)), expected(noise(2)))


def test_threads_try_the_small_pass_once() -> None:
    full, small = Counted(BATCH), Counted(FEW)
    together = threading.Barrier(4)
    passes = ForwardPasses(full, BATCH, small)
    passes(noise(1))

    def some(seed: int) -> bool:
        together.wait(60)
        return np.array_equal(passes(noise(5, seed)), expected(noise(5, seed)))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(some, range(4)))
    assert full.ran == 1
    assert small.ran == 6


def test_a_pass_is_even_if_no_vector_depends_on_its_place() -> None:
    assert even(Counted(BATCH), noise(BATCH))
    assert not even(Counted(BATCH, moved=True), noise(BATCH))
