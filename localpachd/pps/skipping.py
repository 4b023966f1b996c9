"""Which datums of a job are new, which have changed, which may be skipped, and what has gone. Pure: reads nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from localpachd.pps.datums import Datum
from localpachd.pps.spec import DatumSetSpec

_SETS_PER_WORKER = 4


@dataclass(frozen=True, slots=True)
class Numbered:
    """A datum with its place in the job's processing order and the hash that was compared."""

    index: int
    datum: Datum
    hash: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What a job has to do.

    `parallel` are the datums the base does not know; they run first. `serial` are those it knows but that must be
    processed again; before them `outdated`, the ids whose earlier output goes, is removed. Datums that this very job
    has recorded already (before a crash) are in neither list.
    """

    parallel: tuple[Numbered, ...]
    serial: tuple[Numbered, ...]
    outdated: tuple[str, ...]
    skipped: int
    total: int


def decide(
    datums: Iterable[Datum],
    base: Mapping[str, str],
    done: Collection[str],
    salt: str,
    skipping: bool = True,
) -> Decision:
    """Compares a job's datums with the records it stands on.

    `base` maps the id of every datum recorded there to its hash, or to "" when it was not processed well (FAILED,
    RECOVERED) and so must not be skipped. `done` are the ids this job recorded before a restart. Linear in both.
    """
    parallel: list[Numbered] = []
    serial: list[Numbered] = []
    known: set[str] = set()
    skipped = total = 0
    for index, datum in enumerate(datums):
        total += 1
        before = base.get(datum.id)
        if before is None:
            if datum.id not in done:
                parallel.append(Numbered(index, datum, datum.hash(salt)))
            continue
        known.add(datum.id)
        now = datum.hash(salt)
        if skipping and before == now:
            skipped += 1
        elif datum.id not in done:
            serial.append(Numbered(index, datum, now))
    gone = sorted(identity for identity in base if identity not in known)
    outdated = (*gone, *(each.datum.id for each in serial))
    return Decision(tuple(parallel), tuple(serial), outdated, skipped, total)


def sets(datums: Sequence[Numbered], spec: DatumSetSpec, workers: int) -> Iterable[Sequence[Numbered]]:
    """Deals datums into datum sets, each one task of one worker.

    By count and input bytes as the specification says; without either, evenly, so many sets for each worker (4 unless
    `per_worker` says otherwise).
    """
    number = spec.number
    if not number and not spec.size_bytes:
        number = max(1, len(datums) // (workers * (spec.per_worker or _SETS_PER_WORKER)))
    start = size = 0
    for position, each in enumerate(datums, 1):
        size += sum(file.size for file in each.datum.inputs)
        if (number and position - start >= number) or (spec.size_bytes and size >= spec.size_bytes):
            yield datums[start:position]
            start, size = position, 0
    if start < len(datums):
        yield datums[start:]
