"""Adding pictures to `images` and removing them: the resulting files and their names."""

import io
import random
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.errors import LookalikeError
from pipelines.library import ingest
from pipelines.library.library_commit import SINGLE_FILES
from stages.record import block_names
from stages.record.pfs_names import is_block, unescape
from tests.pipelines.library.filled_library import Place, many
from tests.pipelines.library.picture_contents import ODD, earlier_blocks, untar

pytestmark = pytest.mark.late_alone


def test_files_become_top_level_files(place: Place) -> None:
    written = place.add({"a.jpg": b"one", "photos/b.jpg": b"two", "empty.jpg": b""})
    assert written.files == 3
    assert place.entries() == {"a.jpg", "photos%2Fb.jpg", "empty.jpg"}
    assert place.library() == {"a.jpg": b"one", "photos/b.jpg": b"two", "empty.jpg": b""}
    head = place.connection.client.inspect_branch("images", "master", project_name=place.connection.project).head
    assert head.id == written.commit


@pytest.mark.parametrize("in_blocks", [False, True])
def test_unusual_names_are_kept(place: Place, in_blocks: bool) -> None:
    contents = {name: name.encode("utf-8", "surrogateescape") for name in ODD}
    ballast = many(range(10)) if in_blocks else {}
    ingest.add(place.connection, place.files({**contents, **ballast}), most_single=0 if in_blocks else len(ODD))
    assert place.library() == {**contents, **ballast}
    assert any(map(is_block, place.entries())) is in_blocks
    place.remove(*ODD)
    assert place.library() == ballast


def test_many_files_become_blocks_of_neighbours(place: Place) -> None:
    heard: list[int] = []
    contents = {**many(range(90)), **{f"trips/{number:03}.jpg": b"t" for number in range(11)}}
    assert ingest.add(place.connection, place.files(contents), heard.append).files == 101
    assert sum(heard) == 101
    assert place.library() == contents
    names = sorted(contents)
    assert sorted(map(sorted, place.blocks().values())) == [names[:40], names[40:80], names[80:]]
    assert place.entries() == place.blocks().keys()


def test_equal_pictures_make_equal_blocks(place: Place) -> None:
    place.add(many(range(90)))
    before = place.repo.entries()
    ingest.remove_all(place.connection)
    place.add(many(reversed(range(90))))
    assert place.repo.entries() == before
    ingest.remove_all(place.connection)
    place.add({**many(range(90)), "photos/0007.jpg": b"another"})
    assert len(place.repo.entries().keys() & before.keys()) == 2, "a name follows from hashes, too"


def test_a_handful_of_files_stay_files(place: Place) -> None:
    place.add(many(range(SINGLE_FILES)))
    assert len(place.entries()) == SINGLE_FILES
    assert place.blocks() == {}
    place.add(many(range(100, 101 + SINGLE_FILES)))
    assert [*map(len, place.blocks().values())] == [SINGLE_FILES + 1]


def test_a_block_is_never_written_again(place: Place) -> None:
    """Removed and replaced pictures are hidden in it, and equal ones that come back are shown again."""
    place.add(many(range(50)))
    before = place.repo.entries()
    (block,) = (name for name, names in place.blocks().items() if "photos/0007.jpg" in names)
    place.add(many([7], version=1))
    place.remove("photos/0008.jpg", "photos/0009.jpg")
    assert place.library() == {**many([*range(7), *range(10, 50)]), **many([7], 1)}
    assert place.masked() == {block: {f"photos/000{digit}.jpg" for digit in (7, 8, 9)}}
    own = before | {"photos%2F0007.jpg": place.repo.entries()["photos%2F0007.jpg"]}
    assert place.repo.entries() == own
    place.add(many([8, 9]))
    assert place.masked() == {block: {"photos/0007.jpg"}}
    assert place.repo.entries() == own
    place.add(many([7]))
    assert place.library() == many(range(50))
    assert place.repo.entries() == before
    assert place.masked() == {}


def test_a_block_of_hidden_pictures_goes_with_its_mask(place: Place) -> None:
    place.add(many(range(50)))
    place.remove(*many(range(39)))
    assert len(place.entries()) == 2
    place.add(many([39], version=1))
    assert place.masked() == {}
    assert sorted(map(len, place.blocks().values())) == [10]
    assert place.library() == {**many(range(40, 50)), **many([39], 1)}


def test_the_mask_of_a_block_that_others_deleted_goes(place: Place) -> None:
    place.add(many(range(50)))
    place.remove("photos/0007.jpg", "photos/0045.jpg")
    gone = next(name for name, names in place.blocks().items() if "photos/0007.jpg" in names)
    place.repo.write([DeleteFile(f"/{gone}")])
    place.add({"a.jpg": b"one"})
    assert place.library() == {**many([*range(40, 45), *range(46, 50)]), "a.jpg": b"one"}
    assert [*place.masked().values()] == [{"photos/0045.jpg"}]


def test_blocks_of_an_earlier_version_stay_and_get_masks(place: Place) -> None:
    held = many(range(90))
    blocks = earlier_blocks(held, "0", "10", "11")
    place.repo.write([PutFile(f"/{name}", content) for name, content in blocks.items()])
    before = place.repo.entries()
    assert ingest.present(place.connection, ["photos/0007.jpg", "a.jpg"], dict) == (
        ["photos/0007.jpg"], {"a.jpg": "not in the library"}
    )  # fmt: skip
    place.remove("photos/0007.jpg", "photos/0008.jpg")
    place.add({**many([8, 9]), **many([10], 1)})
    assert place.library() == {**{n: c for n, c in held.items() if n != "photos/0007.jpg"}, **many([10], 1)}
    assert {**place.repo.entries(), **before} == place.repo.entries(), "no block was written"
    assert sorted(name for names in place.masked().values() for name in names) == [*many([7, 10])]
    gone = untar(blocks[block_names.file_name("0")])
    place.remove(*gone.keys() - {"photos/0007.jpg", "photos/0010.jpg"})
    assert block_names.file_name("0") not in place.entries()


def test_few_pictures_are_put_and_removed_without_listing_all_files(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each of thousands of lone pictures would be dearer than the one before."""
    place.add({**many(range(20)), "a.jpg": b"one"})
    place.remove("photos/0003.jpg")
    monkeypatch.delattr(Repository, "entries")
    sources = place.files({"a.jpg": b"one", "photos/0007.jpg": b"new", "b.jpg": b"two"})
    added = ingest.add(place.connection, sources, agree=lambda _: lambda _: None)
    assert added.held == {"a.jpg": True, "photos/0007.jpg": False}
    place.remove("b.jpg", "photos/0008.jpg")
    monkeypatch.undo()
    expected = {**many(range(20)), "a.jpg": b"one", "photos/0007.jpg": b"new"}
    assert place.library() == {n: of for n, of in expected.items() if n not in ("photos/0003.jpg", "photos/0008.jpg")}


def test_without_masks_one_is_told_to_upgrade(place: Place) -> None:
    """In a library of an earlier version, everything else is done."""
    place.connection.client.delete_repo("masks", project_name=place.connection.project)
    place.add(many(range(20)))
    before = place.commits()
    refused = "nothing was changed.*`lookalike upgrade`"
    with pytest.raises(LookalikeError, match=refused):
        place.remove("photos/0007.jpg")
    with pytest.raises(LookalikeError, match=refused):
        place.add(many([7], 1))
    assert place.commits() == before
    place.add({"a.jpg": b"one"})
    assert set(place.repo.entries()) == {"a.jpg", *place.repo.entries()}


def test_archives_are_not_packed_into_blocks(place: Place) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("inner.jpg"))
    contents = {**many(range(100)), "photos/all.tar.gz": archive.getvalue(), "unlabeled_X.bin": bytes(2 * 3 * 96 * 96)}
    place.add(contents)
    assert {"photos%2Fall.tar.gz", "unlabeled_X.bin"} < place.entries()
    assert set().union(*place.blocks().values()) == set(many(range(100)))
    place.add({"photos/0003.jpg": archive.getvalue()})
    assert place.library() == {**contents, "photos/0003.jpg": archive.getvalue()}
    assert "photos%2F0003.jpg" in place.entries()


def test_removing_a_missing_picture_removes_nothing(place: Place) -> None:
    place.add({"a.jpg": b"one", "b.jpg": b"two"})
    with pytest.raises(LookalikeError, match=r"not in the library: c\.jpg, photos/0001\.jpg; nothing was removed"):
        place.remove("a.jpg", "c.jpg", "photos/0001.jpg")
    assert set(place.library()) == {"a.jpg", "b.jpg"}
    assert place.remove("a.jpg", "a.jpg").files == 1
    assert set(place.library()) == {"b.jpg"}


def test_a_list_removes_exactly_its_names_in_one_commit(place: Place) -> None:
    """Files, pictures in blocks, files put by other means; never folders, globs, or members of archives."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("inner.jpg"))
    alone = {"a.jpg": b"one", "*.jpg": b"a name", "two\nlines.jpg": b"two", "set/all.tar": archive.getvalue()}
    ingest.add(place.connection, place.files(many(range(120))))
    place.add(alone)
    place.repo.write([PutFile("/other/b.jpg", b"three"), PutFile("/other/c.jpg", b"four")])
    before, library = place.commits(), place.library()
    doomed = ["*.jpg", "two\nlines.jpg", "other/b.jpg", *many(range(0, 120, 7))]
    others = ["other", "photos/*.jpg", "set/all.tar/inner.jpg", "gone.jpg", "a.jpg/b.jpg"]
    found, missing = ingest.present(place.connection, [*doomed, *others], dict)
    assert found == doomed
    assert place.commits() == before
    written = ingest.forget(place.connection, [*found, *others])
    assert written is not None
    assert sorted(written.names) == sorted(doomed)
    assert place.commits() == before + 1
    assert place.library() == {name: content for name, content in library.items() if name not in doomed}
    assert missing == {
        "other": "not in the library",
        "photos/*.jpg": "not in the library",
        "set/all.tar/inner.jpg": "inside set/all.tar, which can only be removed as a whole",
        "gone.jpg": "not in the library",
        "a.jpg/b.jpg": "inside a.jpg, which can only be removed as a whole",
    }
    assert ingest.present(place.connection, doomed, dict) == ([], dict.fromkeys(doomed, "not in the library"))
    assert ingest.forget(place.connection, doomed) is None
    assert place.commits() == before + 1


def test_files_put_by_other_means_are_matched_by_name(place: Place) -> None:
    place.repo.write(
        [PutFile("/photos/a.jpg", b"one"), PutFile("/photos/b.jpg", b"two"), PutFile("/photos/c.jpg", b"three")]
    )
    place.remove("photos/a.jpg")
    assert set(place.library()) == {"photos/b.jpg", "photos/c.jpg"}
    place.add({"photos/b.jpg": b"new"})
    assert place.library() == {"photos/b.jpg": b"new", "photos/c.jpg": b"three"}
    with pytest.raises(LookalikeError, match=r"has a directory called photos: .*lookalike remove photos/"):
        place.add({"photos": b"a file"})
    place.remove("photos/")
    place.add({"photos": b"a file"})
    assert place.library() == {"photos": b"a file"}


def test_an_invalid_block_is_named(place: Place) -> None:
    name = block_names.file_name("")
    place.repo.write([PutFile(f"/{name}", b"no tar file" * 100)])
    with pytest.raises(LookalikeError, match=f"{name} in images is not a block"):
        place.add({"a.jpg": b"one"})


@pytest.mark.parametrize("in_blocks", [False, True])
def test_files_that_cannot_be_read_are_left_out_with_a_reason(place: Place, in_blocks: bool) -> None:
    """Whether they cannot be opened, or fail when they are read further: then what was there before stays."""
    place.add({"gone.jpg": b"the old one", "shorter.jpg": b"the old one"})
    contents = {"a.jpg": b"one", "gone.jpg": b"two", "shorter.jpg": b"three", "z.jpg": b"four"}
    first, gone, shorter, last = place.files(contents)
    gone.path.unlink()
    broken = replace(shorter, offset=0, size=100)
    written = ingest.add(place.connection, [first, gone, broken, last], most_single=0 if in_blocks else 9)
    assert (written.names, written.files) == (["a.jpg", "z.jpg"], 2)
    assert written.unreadable == {
        str(gone.path): "No such file or directory",
        str(shorter.path): "it has become shorter while it was read",
    }
    assert place.library() == {
        "a.jpg": b"one", "z.jpg": b"four", "gone.jpg": b"the old one", "shorter.jpg": b"the old one"
    }  # fmt: skip


def test_nothing_is_put_if_no_file_can_be_read(place: Place) -> None:
    (source,) = place.files({"a.jpg": b"one"})
    source.path.unlink()
    with pytest.raises(LookalikeError, match=rf"cannot read {source.path}: No such file.*: nothing was put"):
        ingest.add(place.connection, [source])
    assert place.commits() == 0


def test_a_picture_that_others_put_into_a_block_meanwhile_is_replaced_there(place: Place) -> None:
    """The place of a picture is that in the commit before, even if the upload began earlier."""
    place.add(many(range(5)))
    first = True

    def meanwhile(_: int) -> None:
        nonlocal first
        if first:
            first = False
            ingest.add(place.own(), place.files(many(range(8), version=1)), most_single=0)

    ingest.add(place.connection, place.files(many(range(3, 10), version=2)), meanwhile)
    assert place.library() == {**many(range(8), 1), **many(range(3, 10), 2)}


def test_writers_at_once_lose_nothing(place: Place) -> None:
    """Each adds, replaces and removes pictures of its own, in blocks that all of them share."""
    kept = many(range(3000, 3038))
    ingest.add(place.connection, place.files(kept), most_single=0)

    def change(writer: int) -> dict[str, bytes]:
        connection, numbers = place.own(), range(writer * 100, writer * 100 + 30)
        own = place.beside(f"writer-{writer}")
        ingest.add(connection, own.files(many(numbers)), most_single=[0, 1000][writer % 2])
        ingest.add(connection, own.files(many(numbers[:20], version=1)), most_single=0)
        ingest.remove(connection, list(many(numbers[15:25])))
        return {**many(numbers[:15], 1), **many(numbers[25:])}

    with ThreadPoolExecutor(3) as writers:
        for left in writers.map(change, range(3)):
            kept |= left
    assert place.library() == kept


def test_a_library_is_emptied(place: Place) -> None:
    place.add({**many(range(120)), "one.jpg": b"1"})
    place.repo.write([PutFile("/photos/a.jpg", b"one")])
    ingest.remove_all(place.connection)
    assert place.entries() == set()


@pytest.mark.parametrize("in_blocks", [False, True])
def test_words_choose_pictures(place: Place, in_blocks: bool) -> None:
    names = {"trip/a.jpg", "trip/b.png", "trip/day 2/c.jpg", "one.jpg", "[x]*.png", "x.png"}
    for words, gone in (
        (["trip/a.jpg"], {"trip/a.jpg"}),
        (["trip"], {"trip/a.jpg", "trip/b.png", "trip/day 2/c.jpg"}),
        (["./trip/day 2/"], {"trip/day 2/c.jpg"}),
        (["trip/*.jpg"], {"trip/a.jpg"}),
        (["tr*"], {"trip/a.jpg", "trip/b.png", "trip/day 2/c.jpg"}),
        (["**.jpg", "[x]*.png"], {"trip/a.jpg", "trip/day 2/c.jpg", "one.jpg", "[x]*.png"}),
    ):
        ingest.add(place.connection, place.files(dict.fromkeys(names, b"x")), most_single=0 if in_blocks else 1000)
        assert set(ingest.remove(place.connection, words).names) == gone
        assert set(place.library()) == names - gone
    with pytest.raises(LookalikeError, match="not in the library: /home/trip; nothing was removed"):
        ingest.remove(place.connection, ["/home/trip"])


def test_random_changes(place: Place) -> None:
    """A library after many changes equals a dictionary after the same, and nothing is put into a block but what is new:
    everything else keeps its datum."""
    lot, held = random.Random(5), dict[str, bytes]()
    for step in range(12):
        before, put = place.repo.entries(), dict[str, bytes]()
        numbers = lot.sample(range(160), lot.choice([3, 12, 110]))
        if held and lot.random() < 0.4:
            names = [name for name in many(numbers) if name in held]
            place.remove(*names) if names else None
            held = {name: content for name, content in held.items() if name not in names}
        else:
            put = many(numbers, lot.randrange(step + 1))  # some are as they were once
            place.add(put)
        new = {name: content for name, content in put.items() if held.get(name) != content}
        held |= put
        assert place.library() == held
        after = place.repo.entries()
        same = {name for name, content in before.items() if after.get(name) == content}
        made = {name for name in after.keys() - same if is_block(name)}
        assert not made & before.keys(), "a block was written again"
        names = [name for block in made for name in place.blocks()[block]]
        alone = {unescape(name) for name in after.keys() - same - made}
        assert {*names, *alone} <= new.keys()
        assert len(names) == len(set(names))
