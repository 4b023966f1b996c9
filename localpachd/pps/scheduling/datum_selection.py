"""The comparison of a job's datums with its base: new, changed, skipped and gone. Pure: reads nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from localpachd.pps.datums import Datum
from localpachd.pps.specs.spec import DatumSetSpec

_SETS_PER_WORKER = 4


@dataclass(frozen=True, slots=True)
class NumberedDatum:
    """A datum with its place in the job's processing order and its hash."""

    index: int
    datum: Datum
    hash: str


@dataclass(frozen=True, slots=True)
class DatumSelection:
    """The datums that a job has to process.

    `parallel` are the datums that are not in the base; they run first. `serial` are those of the base that must be
    processed again; before that, the output of the ids in `outdated` is removed. Datums that this job recorded before
    a crash are in neither list.
    """

    parallel: tuple[NumberedDatum, ...]
    serial: tuple[NumberedDatum, ...]
    outdated: tuple[str, ...]
    skipped: int
    total: int


def select_datums(
    datums: Iterable[Datum], base: Mapping[str, str], done: Collection[str], salt: str, skipping: bool = True
) -> DatumSelection:
    """Compares a job's datums with those of its base.

    `base` maps the id of every datum in the base to its hash, or to "" if it must not be skipped because it failed or
    was recovered. `done` are the ids that this job recorded before a restart. Linear in both.
    """
    parallel: list[NumberedDatum] = []
    serial: list[NumberedDatum] = []
    known: set[str] = set()
    skipped = total = 0
    for index, datum in enumerate(datums):
        total += 1
        before = base.get(datum.id)
        if before is None:
            if datum.id not in done:
                parallel.append(NumberedDatum(index, datum, datum.hash(salt)))
            continue
        known.add(datum.id)
        now = datum.hash(salt)
        if skipping and before == now:
            skipped += 1
        elif datum.id not in done:
            serial.append(NumberedDatum(index, datum, now))
    gone = sorted(identity for identity in base if identity not in known)
    outdated = (*gone, *(each.datum.id for each in serial))
    return DatumSelection(tuple(parallel), tuple(serial), outdated, skipped, total)


def split_into_sets(
    datums: Sequence[NumberedDatum], spec: DatumSetSpec, workers: int
) -> Iterable[Sequence[NumberedDatum]]:
    """Divides datums into datum sets, each a task for one worker.

    The specification limits a set by count or input bytes; without a limit, each worker gets `per_worker` sets (4 if
    not given) of equal size.
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
