import threading

import pytest

from localpachd.diagnosis import profiles
from localpachd.errors import PachError


class Waiting:
    """A thread that waits."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.ended.wait, name="waits for the test")


def test_the_stack_of_every_thread_is_shown() -> None:
    waiting = Waiting()
    waiting.thread.start()
    shown = profiles.profile("goroutine", 0, lambda: True)
    waiting.ended.set()
    waiting.thread.join()
    assert "(waits for the test):" in shown
    assert "self._cond.wait(timeout)" in shown
    assert "test_the_stack_of_every_thread_is_shown" in shown


def test_processor_time_is_attributed_to_the_stack_that_takes_it() -> None:
    ended = threading.Event()

    def busy_with_nothing() -> None:
        while not ended.is_set():
            sum(range(1000))

    thread = threading.Thread(target=busy_with_nothing, name="a busy; thread")
    waiting = Waiting()
    thread.start()
    waiting.thread.start()
    found = iter(lambda: profiles.profile("cpu", 0.3, lambda: True), "")
    # A machine in use may not give the thread any time at first.
    shown = next(text for text in found if spent(text, "busy_with_nothing") > 10_000)
    ended.set()
    waiting.ended.set()
    thread.join()
    waiting.thread.join()
    assert "a_busy,_thread;threading.Thread._bootstrap:" in shown
    assert spent(shown, "waits_for_the_test") < spent(shown, "busy_with_nothing")


def spent(shown: str, name: str) -> int:
    """The microseconds of all stacks with this name in them."""
    return sum(int(line.rpartition(" ")[2]) for line in shown.splitlines() if name in line)


def test_a_profile_ends_with_its_client() -> None:
    assert profiles.profile("cpu", 3600, lambda: False) == ""


def test_the_heap_is_counted_by_type() -> None:
    class Kept(bytearray):
        """Large enough to be among the types that a profile shows, whatever else this process has."""

    kept = [Kept(10_000) for _ in range(1234)]
    texts = [f"{number:010000d}" for number in range(100)]
    shown = profiles.profile("heap", 0, lambda: True)
    rows = {line.split()[2]: int(line.split()[1]) for line in shown.partition("type\n")[2].splitlines()}
    assert rows[f"{__name__}.{Kept.__qualname__}".replace(" ", "")] == len(kept)
    assert next(int(line.split()[0]) for line in shown.splitlines() if line.endswith("builtins.str")) > 10_000 * len(
        texts
    )
    assert "VmRSS" in shown


def test_an_unknown_profile_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(PachError, match='unable to find profile "mutex": localpachd has the profiles cpu, goroutine'):
        profiles.profile("mutex", 0, lambda: True)


@pytest.mark.only_in_all
def test_a_count_of_the_heap_disturbs_no_other_thread() -> None:
    """Each makes tuples of iterators: what the collector lists before it is complete."""
    over, failures = threading.Event(), list[BaseException]()

    def work() -> None:
        while not over.is_set():
            try:
                tuple(each for each in range(20_000))
            except SystemError as failure:
                failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        profiles.heap()
    over.set()
    for thread in threads:
        thread.join()
    assert failures == []
