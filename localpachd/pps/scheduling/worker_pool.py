"""The worker pool of one job: a thread for each worker, which takes datum sets to the runner. Knows no database."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from localpachd.pps.datums import DatumInput
from localpachd.pps.log_queries import inputs_of, match_inputs
from localpachd.pps.pps_entities import Job, LogMessage, WorkerStatus
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.pps.scheduling.event_queue import EventQueue
from localpachd.pps.scheduling.job_recorder import FinishedDatum
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.tasks import CancelToken, DatumResult, DatumWork, LogLine, Task

_BATCH = 500  # results in one batch


@dataclass(frozen=True, slots=True)
class ResultBatch:
    """Results and log lines since the last batch."""

    finished: Sequence[FinishedDatum]
    lines: Sequence[LogMessage]


@dataclass(frozen=True, slots=True)
class _Slot:
    """A worker and the datum set that it is processing."""

    token: CancelToken
    datums: Sequence[NumberedDatum]


PoolEvent = FinishedDatum | LogMessage


class WorkerPool:
    """Runs datum sets until none are left or it is cancelled. `batches` must be read to the end. Results come one by
    one or, with `whole_sets`, all those of a set when it ends."""

    def __init__(
        self,
        runner: LocalRunner,
        task: Task,
        job: Job,
        prepare: Callable[[NumberedDatum], DatumWork],
        whole_sets: bool = False,
    ) -> None:
        self._runner = runner
        self._task = task
        self._job = job
        self._prepare = prepare
        self._whole_sets = whole_sets
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot] = {}
        self._troubles: list[Exception] = []
        self._cancelled = False

    def cancel(self) -> None:
        """Kills what is running and starts nothing more."""
        with self._lock:
            self._cancelled = True
            tokens = [slot.token for slot in self._slots.values()]
        for token in tokens:
            token.cancel()

    @property
    def status(self) -> tuple[WorkerStatus, ...]:
        """The datum that each busy worker is processing, and the beginning of its present attempt."""
        with self._lock:
            return tuple(self._status(worker, slot) for worker, slot in sorted(self._slots.items()))

    def restart(self, filters: Sequence[str]) -> bool:
        """Ends the present attempt of every running datum whose inputs match all filters. Returns whether any does."""
        with self._lock:
            slots = list(self._slots.values())
        restarted = False
        for slot in slots:
            matching = {each.datum.id for each in slot.datums if match_inputs(filters, each.datum)}
            restarted |= slot.token.restart(matching)
        return restarted

    def batches(self, sets: Iterable[Sequence[NumberedDatum]], workers: Sequence[str]) -> Iterator[ResultBatch]:
        """Starts workers with these names and yields batches of at most 500 results, from about 0.2 s each. After the
        last one, raises the first error that stopped a worker."""
        events: EventQueue[PoolEvent] = EventQueue(len(workers))
        todo = iter(sets)
        threads = [threading.Thread(target=self._work, args=(name, todo, events), name=name) for name in workers]
        for thread in threads:
            thread.start()
        for found in events.batches():
            yield from _parts(found)
        for thread in threads:
            thread.join()
        if self._troubles:
            raise self._troubles[0]

    def _work(self, worker: str, todo: Iterator[Sequence[NumberedDatum]], events: EventQueue[PoolEvent]) -> None:
        try:
            while (slot := self._take(worker, todo)) is not None:
                self._run(worker, slot, events)
        except Exception as trouble:  # raised by `batches`, whatever it is
            with self._lock:
                self._troubles.append(trouble)
            self.cancel()
        finally:
            with self._lock:
                self._slots.pop(worker, None)
            events.close()

    def _take(self, worker: str, todo: Iterator[Sequence[NumberedDatum]]) -> _Slot | None:
        with self._lock:
            self._slots.pop(worker, None)
            datums = None if self._cancelled else next(todo, None)
            if datums is None:
                return None
            self._slots[worker] = _Slot(CancelToken(), datums)
            return self._slots[worker]

    def _run(self, worker: str, slot: _Slot, events: EventQueue[PoolEvent]) -> None:
        by_id = {each.datum.id: each for each in slot.datums}
        kept: list[FinishedDatum] = []
        deliver = kept.append if self._whole_sets else events.put

        def done(result: DatumResult) -> None:
            deliver(FinishedDatum(by_id[result.id], result))

        def log(line: LogLine) -> None:
            events.put(self._message(worker, line, by_id.get(line.datum_id)))

        task = replace(self._task, pod=replace(self._task.pod, worker=worker))
        self._runner.run_set(task, [self._prepare(each) for each in slot.datums], done, log, slot.token)
        for each in kept:
            events.put(each)

    def _status(self, worker: str, slot: _Slot) -> WorkerStatus:
        began = slot.token.began
        return WorkerStatus(worker, self._job.id, began, _inputs(slot) if began else ())

    def _message(self, worker: str, line: LogLine, numbered: NumberedDatum | None) -> LogMessage:
        return LogMessage(
            ts=time.time_ns(),
            pipeline=self._job.pipeline,
            job=self._job.id,
            datum=line.datum_id,
            worker=worker,
            user=line.user,
            master=False,
            message=line.message,
            data=inputs_of(numbered.datum) if numbered else (),
        )


def _inputs(slot: _Slot) -> tuple[DatumInput, ...]:
    datum = slot.token.datum
    return next((each.datum.inputs for each in slot.datums if each.datum.id == datum), ())


def _parts(events: Sequence[PoolEvent]) -> Iterator[ResultBatch]:
    """Events as batches of at most 500 results; the lines go with the first."""
    finished = [event for event in events if isinstance(event, FinishedDatum)]
    lines = [event for event in events if isinstance(event, LogMessage)]
    for start in range(0, max(1, len(finished)), _BATCH):
        yield ResultBatch(finished[start : start + _BATCH], () if start else lines)
