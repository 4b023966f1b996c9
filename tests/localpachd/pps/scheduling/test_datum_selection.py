"""The selection of datums to skip: a pure function of records and datums."""

from hypothesis import given, strategies as st

from localpachd import ids
from localpachd.pps.datums import Datum, DatumInput
from localpachd.pps.scheduling.datum_selection import NumberedDatum, select_datums, split_into_sets
from localpachd.pps.specs.spec import DatumSetSpec

SALT = "salt"


def datum(path: str, content: bytes = b"", size: int = 1) -> Datum:
    file = DatumInput("in", "default", "images", "user", "master", path, ids.file_hash([content]), size, "c" * 32)
    return Datum(ids.datum_id([(file.name, file.repo, file.branch, path)]), (file,))


def record(one: Datum, salt: str = SALT) -> dict[str, str]:
    return {one.id: one.hash(salt)}


A, B, C = datum("/a"), datum("/b"), datum("/c")


def chosen(numbered: tuple[NumberedDatum, ...]) -> list[Datum]:
    return [each.datum for each in numbered]


def test_without_a_base_everything_is_new() -> None:
    decision = select_datums([A, B], {}, (), SALT)
    assert chosen(decision.parallel) == [A, B]
    assert [each.index for each in decision.parallel] == [0, 1]
    assert (decision.serial, decision.outdated, decision.skipped, decision.total) == ((), (), 0, 2)


def test_equal_hashes_are_skipped_changed_ones_replaced_missing_ones_removed() -> None:
    changed = datum("/b", b"other")
    decision = select_datums([A, changed], record(A) | record(B) | record(C), (), SALT)
    assert decision.skipped == 1
    assert decision.parallel == ()
    assert chosen(decision.serial) == [changed]
    assert set(decision.outdated) == {B.id, C.id}


def test_failed_and_recovered_datums_are_never_skipped() -> None:
    decision = select_datums([A], {A.id: "", B.id: ""}, (), SALT)
    assert chosen(decision.serial) == [A]
    assert set(decision.outdated) == {A.id, B.id}  # what a recovered datum wrote goes with it


def test_every_job_and_another_salt_skip_nothing() -> None:
    assert select_datums([A, B], record(A) | record(B), (), SALT, skipping=False).skipped == 0
    assert select_datums([A, B], record(A) | record(B), (), "other").skipped == 0


def test_datums_recorded_before_a_restart_are_neither_run_nor_removed_again() -> None:
    changed = datum("/b", b"other")
    decision = select_datums([A, changed, C], record(B), {A.id, changed.id}, SALT)
    assert chosen(decision.parallel) == [C]
    assert decision.serial == ()
    assert decision.outdated == ()
    assert decision.total == 3


paths = st.dictionaries(st.sampled_from([f"/{name}" for name in "abcdefgh"]), st.sampled_from([b"1", b"2"]))


@given(paths, paths, st.sets(st.sampled_from([f"/{name}" for name in "abcdefgh"])))
def test_each_datum_is_in_exactly_one_group(
    before: dict[str, bytes], now: dict[str, bytes], done_paths: set[str]
) -> None:
    base = {key: value for path in before for key, value in record(datum(path, before[path])).items()}
    wanted = [datum(path, now[path]) for path in sorted(now)]
    done = {each.id for each in wanted if each.inputs[0].path in done_paths and base.get(each.id) != each.hash(SALT)}
    decision = select_datums(wanted, base, done, SALT)
    run = [each.datum.id for each in (*decision.parallel, *decision.serial)]
    assert len(run) + decision.skipped + len(done) == decision.total == len(wanted)
    assert len(set(run)) == len(run)
    assert not set(run) & done
    # The skipped datums are those left of the base; all others were removed or replaced.
    kept = base.keys() - set(decision.outdated) - done
    assert len(kept) == decision.skipped
    assert all(base[each.id] == each.hash(SALT) for each in wanted if each.id in kept)


def numbered(count: int, size: int = 1) -> list[NumberedDatum]:
    return [NumberedDatum(index, datum(f"/{index}", size=size), "") for index in range(count)]


def lengths(count: int, spec: DatumSetSpec, workers: int = 1, size: int = 1) -> list[int]:
    return [len(each) for each in split_into_sets(numbered(count, size), spec, workers)]


def test_sets_are_limited_by_count_or_bytes_or_have_equal_size() -> None:
    assert lengths(5, DatumSetSpec(number=2)) == [2, 2, 1]
    assert lengths(5, DatumSetSpec(size_bytes=30), size=10) == [3, 2]
    assert lengths(5, DatumSetSpec(number=2, size_bytes=30), size=10) == [2, 2, 1]
    assert lengths(16, DatumSetSpec(), workers=2) == [2] * 8
    assert lengths(16, DatumSetSpec(per_worker=1), workers=2) == [8, 8]
    assert lengths(3, DatumSetSpec(), workers=2) == [1, 1, 1]
    assert lengths(0, DatumSetSpec()) == []


@given(
    st.integers(0, 50),
    st.builds(DatumSetSpec, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    st.integers(1, 5),
)
def test_sets_hold_every_datum_once_in_order(count: int, spec: DatumSetSpec, workers: int) -> None:
    dealt = [each.index for one in split_into_sets(numbered(count), spec, workers) for each in one]
    assert dealt == list(range(count))
