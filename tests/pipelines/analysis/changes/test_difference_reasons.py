"""The reasons for which answers differ, and the matching of queries."""

import json

from pipelines.analysis.changes.difference_reasons import (
    ADDED,
    MODEL,
    OTHER,
    PARAMETERS,
    PUSHED,
    QUERY,
    REMOVED,
    REPLACED,
    ROSE,
    SHIFTED,
    ChangeCauses,
    differences,
)
from pipelines.analysis.changes.pipeline_versions import SettingChange
from pipelines.analysis.query_answers import AnswerNeighbour, AnswerPair, QueryAnswer, differing, match, parse


def reply(query: str, *ids: str, k: int = 3, name: str = "q.jpg") -> QueryAnswer:
    """An answer whose neighbours are called like their ids, without anything behind a dash."""
    tiles = [AnswerNeighbour(id_, float(rank), (id_.partition("-")[0],)) for rank, id_ in enumerate(ids)]
    return QueryAnswer("entry", query, (name,), tuple(tiles), k, "euclidean", "m", "b")


def because(
    old: QueryAnswer, new: QueryAnswer, causes: ChangeCauses
) -> dict[str, tuple[int | None, int | None, list[str]]]:
    """The old rank, the new rank and the reasons by the neighbour's id."""
    matched = match([old], [new])
    found = differences(AnswerPair(old, new), matched, causes)
    return {each.tile.id: (each.old_rank, each.new_rank, [reason for reason, _ in each.reasons]) for each in found}


def test_a_removed_picture_makes_room() -> None:
    found = because(reply("q", "a", "b", "c"), reply("q", "b", "c", "d"), ChangeCauses(removed=frozenset("a")))
    assert found == {"b": (2, 1, [SHIFTED]), "c": (3, 2, [SHIFTED]), "d": (None, 3, [ROSE]), "a": (1, None, [REMOVED])}


def test_an_added_picture_pushes_others_out() -> None:
    found = because(reply("q", "a", "b", "c"), reply("q", "a", "x", "b"), ChangeCauses(added=frozenset("x")))
    assert found == {"x": (None, 2, [ADDED]), "b": (2, 3, [SHIFTED]), "c": (3, None, [PUSHED])}


def test_a_picture_replaced_under_its_name_has_another_id() -> None:
    found = because(reply("q", "a-1", "b"), reply("q", "a-2", "b"), ChangeCauses(replaced=frozenset("a")))
    assert found == {"a-2": (None, 1, [REPLACED]), "a-1": (1, None, [REPLACED])}


def test_another_model_comes_before_the_library_unless_the_picture_itself_came_or_went() -> None:
    causes = ChangeCauses(frozenset("x"), frozenset(), frozenset("a"), ("one", "two"))
    found = because(reply("q", "a", "b", "c"), reply("q", "x", "c", "d"), causes)
    assert found == {
        "x": (None, 1, [ADDED]),
        "c": (3, 2, [MODEL]),
        "d": (None, 3, [MODEL]),
        "a": (1, None, [REMOVED]),
        "b": (2, None, [MODEL]),
    }


def test_parameters_are_reasons_by_what_they_do() -> None:
    more = SettingChange("K", "2", "3", ("search",))
    found = because(reply("q", "a", "b", k=2), reply("q", "a", "b", "c"), ChangeCauses(settings=(more,)))
    assert found == {"c": (None, 3, [PARAMETERS])}
    found = because(reply("q", "a", "b", "c"), reply("q", "a", "b", k=2), ChangeCauses(settings=(more,)))
    assert found == {"c": (3, None, [PARAMETERS])}
    metric = SettingChange("METRIC", "euclidean", "cosine", ("index", "search"))
    found = because(reply("q", "a", "b"), reply("q", "b", "a"), ChangeCauses(settings=(metric, more)))
    assert found == {"b": (2, 1, [PARAMETERS]), "a": (1, 2, [PARAMETERS])}
    backend = SettingChange("BACKEND", "auto", "faiss", ("search",))
    assert because(reply("q", "a"), reply("q", "b"), ChangeCauses(settings=(backend,)))["b"] == (None, 1, [OTHER])


def test_a_query_that_is_another_picture_of_the_same_name_is_the_reason() -> None:
    assert because(reply("q", "a", "b"), reply("p", "b", "a"), ChangeCauses())["a"] == (1, 2, [QUERY])


def test_with_another_size_of_pictures_names_are_compared() -> None:
    old, new = reply("q1", "a-1", "b-1"), reply("q2", "a-2", "b-2")
    matched = match([old], [new])
    assert not matched.comparable
    assert not list(matched.differing())
    size = SettingChange("IMAGE_SIZE", "224", "160", ("preprocess",))
    found = because(old, reply("q2", "b-2", "a-2"), ChangeCauses(settings=(size,)))
    assert found == {"b-2": (2, 1, [PARAMETERS]), "a-2": (1, 2, [PARAMETERS])}


def test_queries_are_matched_by_picture_then_by_name() -> None:
    old = [reply("1", "a", name="x.jpg"), reply("2", "a", name="y.jpg"), reply("3", "a", name="z.jpg")]
    new = [reply("1", "a", name="renamed.jpg"), reply("9", "a", name="y.jpg"), reply("8", "a", name="new.jpg")]
    found = match(old, new)
    assert [(two.old.id, two.new.id) for two in found.both] == [("1", "1"), ("2", "9")]
    assert [each.id for each in found.new] == ["8"]
    assert [each.id for each in found.gone] == ["3"]


def test_another_renders_file_has_no_answers() -> None:
    assert parse("e", b"not JSON\n") == []
    assert parse("e", b'{"query": 3}\n') == []
    line = {"query": "q", "sources": ["s"], "k": 3, "metric": None, "model": None, "neighbors": []}
    (found,) = parse("e", json.dumps(line).encode())
    assert (found.id, found.metric, found.backbone) == ("q", "", "")


def test_equal_lines_are_left_out() -> None:
    assert differing(b"a\nb\nc\n", b"c\nd\na\n") == (b"b\n", b"d\n")
    assert match([reply("1", "a")], [reply("2", "b")], comparable=True).comparable
