"""Labels given by hand: rows that say otherwise go from every file, and every other byte stays."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings, strategies as st

from stages.record import label_changes
from stages.record.label_changes import OWN_FILE, relabelled
from stages.record.label_files import LabelRow, format_csv, unite
from tests.example_counts import examples

ODD = (
    b"\xef\xbb\xbfname,source,label,by\r\n"
    b'"Tom\r\nCat",a.png,c1,"me, myself"\r\n\r\n,b.png,dog,x\r\nbroken\r\n,"od""d\n.png",dog,\xff\r\n,c.png,dog'
)


def after(files: Mapping[str, bytes], sources: list[str], label: str | None) -> dict[str, bytes]:
    return {**files, **relabelled(files, sources, label)[0]}


def test_a_label_is_given_where_there_are_no_files() -> None:
    changed, touched = relabelled({}, ["b.png", "a.png"], "cat")
    assert changed == {OWN_FILE: b"source,label\r\na.png,cat\r\nb.png,cat\r\n"}
    assert touched == {"a.png", "b.png"}


def test_rows_that_say_otherwise_go_and_all_other_bytes_stay() -> None:
    changed, touched = relabelled({"odd.csv": ODD}, ["a.png", 'od"d\n.png'], "dog")
    without_a = ODD.replace(b'"Tom\r\nCat",a.png,c1,"me, myself"\r\n', b"")
    assert changed["odd.csv"] == without_a
    assert changed[OWN_FILE] == b"source,label\r\na.png,dog\r\n"
    assert touched == {"a.png"}
    assert after({"odd.csv": ODD}, ["c.png"], None) == {"odd.csv": ODD.removesuffix(b",c.png,dog")}


def test_a_label_for_evaluation_alone_is_given_to_train_on_and_another_one_goes() -> None:
    files = {"evaluate/x.csv": b"source,label\na.png,cat\nb.png,dog\n"}
    changed, _ = relabelled(files, ["a.png", "b.png"], "cat")
    assert changed["evaluate/x.csv"] == b"source,label\na.png,cat\n"
    assert changed[OWN_FILE] == b"source,label\r\na.png,cat\r\nb.png,cat\r\n"


def test_what_is_so_already_changes_nothing() -> None:
    files = {"x.csv": b"source,label\na.png,cat\n"}
    assert relabelled(files, ["a.png"], "cat")[0] == {}
    assert relabelled(files, ["b.png"], None)[0] == {}


@pytest.mark.parametrize("content", [b"", b"source;label\na.png;cat\n", "source,label\na.png,x".encode("utf-16")])
def test_a_file_that_gives_no_label_stays(content: bytes) -> None:
    assert "x.csv" not in relabelled({"x.csv": content}, ["a.png"], "dog")[0]
    assert relabelled({"notes.txt": b"source,label\na.png,cat\n"}, ["a.png"], None)[0] == {}


def test_what_follows_a_fault_in_a_file_stays() -> None:
    faulty = b'source,label\na.png,cat\n"b.png"x,cat\na.png,cat\n'
    assert relabelled({"x.csv": faulty}, ["a.png"], None)[0] == {"x.csv": faulty.replace(b"a.png,cat\n", b"", 1)}


NAMES = st.sampled_from(["a", "b,", 'c"', "d\n", "e\r\n", "\udcff", "ä"])
ROWS = st.lists(st.tuples(NAMES, st.sampled_from(["cat", "dog", 'o"x'])))


@settings(max_examples=examples(60))
@given(
    st.dictionaries(st.sampled_from(["x.csv", "y.csv", OWN_FILE, "evaluate/x.csv"]), ROWS),
    st.sets(NAMES, min_size=1),
    st.sampled_from(["cat", "new", None]),
)
def test_afterwards_the_sources_have_this_label_and_others_have_theirs(
    rows: dict[str, list[tuple[str, str]]], sources: set[str], label: str | None
) -> None:
    files = {name: format_csv(LabelRow(*each) for each in some) for name, some in rows.items()}
    found = label_changes.labels_by_source(after(files, sorted(sources), label))
    before = label_changes.labels_by_source(files)
    expected = {source: some for source, some in before.items() if source not in sources}
    assert found == expected | ({} if label is None else {source: {label} for source in sources})
    if label is not None:
        training = unite(each for each in after(files, sorted(sources), label).items() if "/" not in each[0])
        assert {training.of.get(each) for each in sources} == {label}
