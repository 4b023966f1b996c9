"""Events of several threads, read in batches."""

import threading

from localpachd.pps.scheduling.event_queue import EventQueue


def test_every_event_arrives_once_and_in_the_order_of_its_producer() -> None:
    events: EventQueue[tuple[int, int]] = EventQueue(3)

    def produce(name: int) -> None:
        for number in range(5_000):  # in all more than the queue holds
            events.put((name, number))
        events.close()

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    found = [event for batch in events.batches() for event in batch]
    for thread in threads:
        thread.join()
    assert len(found) == 15_000
    for name in range(3):
        assert [number for each, number in found if each == name] == list(range(5_000))


def test_waiting_events_are_one_batch_and_no_batch_is_empty() -> None:
    events: EventQueue[str] = EventQueue(2)
    events.put("a")
    events.put("b")
    events.close()
    events.close()
    assert list(events.batches()) == [["a", "b"]]


def test_a_batch_does_not_wait_for_the_producer_to_close() -> None:
    events: EventQueue[str] = EventQueue()
    batches = events.batches()
    events.put("a")
    assert next(batches) == ["a"]
    events.put("b")
    events.close()
    assert list(batches) == [["b"]]
