"""Notifications by topic: every waiter is woken for its topics, and only for those."""

import threading
from collections.abc import Iterable

from hypothesis import given, strategies as st

from localpachd.pfs.changes import ChangeNotifier, TopicChanges

TOPICS = st.frozensets(st.sampled_from("abc"))


@given(TOPICS, st.lists(st.one_of(TOPICS, st.just("wake"))))
def test_a_feed_returns_each_change_in_its_topics_once(wanted: frozenset[str], told: list[Iterable[str] | str]) -> None:
    changes = ChangeNotifier()
    changes.notify("z")  # before the feed
    with changes.feed(*wanted) as feed:
        for each in told:
            if each == "wake":
                changes.wake()
            else:
                changes.notify(frozenset(each))
        topics = frozenset().union(*(each for each in told if each != "wake"))
        expected = TopicChanges(topics & wanted if wanted else topics, any(not each for each in told))
        assert feed.wait(0) == expected
        assert feed.wait(0) == TopicChanges()


def test_a_change_made_while_looking_is_not_lost() -> None:
    changes = ChangeNotifier()
    looks = 0

    def look() -> bool | None:
        nonlocal looks
        looks += 1
        if looks == 1:
            changes.notify("a")
        return True if looks == 2 else None

    assert changes.wait_for(look, topics="a")


def test_a_wait_is_not_woken_for_other_topics_and_ends_when_it_is_abandoned() -> None:
    changes = ChangeNotifier()
    looked = threading.Semaphore(0)
    left = threading.Event()
    found: list[object] = []

    def wait() -> None:
        found.append(changes.wait_for(lambda: looked.release(), lambda: not left.is_set(), {"a"}))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert looked.acquire(timeout=30)
    changes.notify({"b"})
    changes.notify({"a", "b"})
    assert looked.acquire(timeout=30)
    changes.notify()
    assert looked.acquire(timeout=30)
    left.set()
    changes.wake()
    waiting.join(30)
    assert found == [None]
    assert not looked.acquire(blocking=False)
