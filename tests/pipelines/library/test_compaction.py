"""Blocks that are written again: joined, and without pictures whose bytes are to go."""

import pytest

from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import compaction, ingest
from tests.pipelines.library.filled_library import Place, many

pytestmark = pytest.mark.late_alone


def held_bytes(connection: Connection, content: bytes) -> list[str]:
    """The commits of `images` in which these bytes are."""
    ids = (each.id for each in CommitHistory(connection).records("images"))
    files = ((id_, data) for id_ in ids for _, data in Repository(connection, "images", id_).read_all("/**"))
    return list(dict.fromkeys(id_ for id_, data in files if content in data))


def test_small_blocks_and_single_files_are_joined(place: Place) -> None:
    place.add(many(range(50)))
    for first in range(1000, 1018, 9):
        place.add(many(range(first, first + 9)))
    for number in range(2000, 2005):
        place.add({f"photos/{number}.jpg": b"\xff\xd8\xff%d" % number})
    place.add({"all.zip": b"PK\3\4", "none.txt": b"no picture"})
    library, full = place.library(), next(name for name, of in place.blocks().items() if len(of) == 40)
    rewrite = compaction.joined(place.connection)
    assert (len(rewrite.blocks), len(rewrite.files), rewrite.hidden) == (3, 5, 0)
    assert (rewrite.kept, rewrite.made) == (33, 1)
    before, heard = place.commits(), list[int]()
    compaction.write(place.connection, rewrite, heard.append)
    assert (place.library(), place.commits(), sum(heard)) == (library, before + 1, 33)
    assert place.entries() == {full, "all.zip", "none.txt", *place.blocks()}
    assert len(place.blocks()) == 2
    assert not compaction.joined(place.connection)


def test_a_half_empty_block_loses_what_it_hides(place: Place) -> None:
    place.add(many(range(80)))
    place.remove(*many(range(15)))
    assert not compaction.joined(place.connection), "25 of 40 are left"
    place.remove(*many(range(15, 25)))
    library = place.library()
    rewrite = compaction.joined(place.connection)
    assert (len(rewrite.blocks), rewrite.hidden, rewrite.kept, rewrite.made) == (1, 25, 15, 1)
    compaction.write(place.connection, rewrite)
    assert (place.library(), place.masked()) == (library, {})
    assert sorted(map(len, place.blocks().values())) == [15, 40]
    assert not compaction.joined(place.connection)


def test_nothing_is_written_if_the_library_has_moved_on(place: Place) -> None:
    for first in (0, 100):
        place.add(many(range(first, first + 20)))
    rewrite = compaction.joined(place.connection)
    place.add({"a.jpg": b"one"})
    before = place.library()
    with pytest.raises(LookalikeError, match="others have changed the library meanwhile"):
        compaction.write(place.connection, rewrite)
    assert place.library() == before


@pytest.mark.parametrize("earlier", [False, True], ids=["hidden before", "there"])
def test_a_purge_leaves_no_byte_in_the_newest_commit(place: Place, earlier: bool) -> None:
    secret = b"the only one of its kind"
    place.add({**many(range(50)), "photos/0007.jpg": secret})
    place.add({"a.jpg": secret})
    if earlier:
        place.remove("photos/0007.jpg", "photos/0008.jpg")
    library = place.library()
    rewrite = compaction.purged(place.connection, ["photos/0007.jpg", "a.jpg"])
    assert (rewrite.removed, rewrite.kept) == (("photos/0007.jpg", "a.jpg"), 39 - earlier)
    commit = compaction.write(place.connection, rewrite)
    assert place.library() == {name: of for name, of in library.items() if of != secret}
    assert place.masked() == {}
    holders = held_bytes(place.connection, secret)
    assert len(holders) == 2 + earlier
    assert commit not in holders
    assert compaction.holding(place.connection, rewrite.removed, commit) == holders
    assert compaction.squash(place.connection, holders) == {}
    assert held_bytes(place.connection, secret) == []
    assert place.library() == {name: of for name, of in library.items() if of != secret}


def test_commits_that_cannot_be_squashed_are_named_with_the_reason(place: Place) -> None:
    place.add(many(range(20)))
    ingest.remove(place.connection, ["photos/0007.jpg"])
    head = CommitHistory(place.connection).last("images", 1)[0].id
    kept = compaction.squash(place.connection, [head])
    assert list(kept) == [head]
    assert "no children" in kept[head]


def test_a_purge_names_what_is_not_there(place: Place) -> None:
    place.add(many(range(20)))
    with pytest.raises(LookalikeError, match=r"not in the library or hidden in it: b\.jpg; nothing was removed"):
        compaction.purged(place.connection, ["photos/0001.jpg", "b.jpg"])
