import hashlib
import io
import json
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stages import preprocess
from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from stages.datum.contract import Datum, DatumInput, StageError
from stages.decode.perceptual_hash import perceptual_hash
from stages.decode.picture_normaliser import picture_id
from stages.decode.picture_traits import picture_traits
from stages.decode.thumbnails import thumbnail
from stages.files import query_texts, thumbnail_files
from stages.files.coded_pictures import encode
from stages.files.packs import PackPicture, read_pack, read_rejections
from stages.record import block_names, part_names, pfs_names
from stages.record.framing import PictureSquare, Pixels
from stages.record.sources import LOSSLESS
from tests.small_archives import tarred, zipped
from tests.stages.file_trees import tree
from tests.stages.made_packs import as_compared, pixels_of

Tree = dict[str, bytes]


def picture(seed: int, kind: str = "PNG", size: tuple[int, int] = (96, 96)) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def one_colour(side: int, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), (200, 100, 50)).save(file, kind)
    return file.getvalue()


def parts_of(made: Iterable[str]) -> set[str]:
    """The parts that these files of packs and of thumbnails belong to."""
    return {Path(name).parent.name for name in made}


def src(repo_path: str) -> str:
    return hashlib.sha256(repo_path.encode()).hexdigest()[:16]


def pixels_in(content: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(content)))


def id_of(pixels: Pixels) -> str:
    """The id of a square picture that is not scaled."""
    return picture_id(PictureSquare(pixels, (pixels.shape[1], pixels.shape[0])))


class Datums:
    """Puts datums on disk and runs the stage on them, by default at the pictures' usual size."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = 0
        self.part = part_names.PART

    def run(self, repo_path: str, content: bytes | Tree, name: str = "images", **environment: str) -> Tree:
        self.runs += 1
        path = self.root / str(self.runs) / repo_path
        for below, data in content.items() if isinstance(content, dict) else [("", content)]:
            file = path / below if below else path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        path.mkdir(parents=True, exist_ok=True) if content == {} else None
        out = self.root / f"{self.runs}.out"
        stage = preprocess.start({"IMAGE_SIZE": "96", **environment})
        stage.part = self.part
        stage(Datum({name: DatumInput(name, path, repo_path, "c")}, out))
        return tree(out)


@pytest.fixture
def datums(tmp_path: Path) -> Datums:
    return Datums(tmp_path)


def test_one_picture_is_a_part_of_its_own(datums: Datums, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = datums.run("a%2Fcat.png", picture(1))
    pixels = pixels_in(picture(1))
    digest = id_of(pixels)
    part = name = src("a%2Fcat.png")
    packed = f"library/{part}/{name}.pack"
    shown = f"thumbnails/{part_names.directory(part)}/{part}/{name}.thumbnails"
    assert list(made) == [packed, shown]
    assert made[shown] == thumbnail(Image.open(io.BytesIO(picture(1))))
    pack = read_pack(tmp_path / "1.out" / packed)
    assert np.array_equal(pixels_of(pack), as_compared(pixels)[None])
    (source,) = pack.pictures[0].sources
    assert source[:6] == ("a/cat.png", hashlib.sha256(picture(1)).hexdigest(), 96, 96, len(picture(1)), "")
    assert (source.coding, len(source.encoder), len(source.pixels)) == (LOSSLESS, 8, 32)
    traits = picture_traits(pixels)
    assert pack.pictures == (
        PackPicture(
            digest, (source,), (96, 96), perceptual_hash(pixels), len(made[shown]), *traits, len(encode(pixels))
        ),
    )
    assert pack.framing.fit == "pad"
    assert capsys.readouterr().out.splitlines()[-1] == "preprocess: 1 pictures, 0 rejected"  # after its progress


def test_the_list_of_a_blocks_pictures_changes_nothing_and_is_not_rejected(datums: Datums) -> None:
    members = {"cat.png": picture(1), "dog.png": picture(2)}
    block = block_names.file_name("")
    listed = tarred({pfs_names.MEMBERS_FILE: b'{"path": "cat.png"}\n', **members})
    assert datums.run(block, listed) == datums.run(block, tarred(members))


def shown_at(made: Tree, name: str) -> bytes:
    (found,) = (content for path, content in made.items() if path.endswith(f"/{name}.thumbnails"))
    return found


def test_each_thumbnail_of_a_picture_is_kept_whichever_source_may_go(datums: Datums) -> None:
    """Equal at 8 pixels, but not as thumbnails."""
    plain = {f"{side}.png": one_colour(side) for side in (32, 64, 128)} | {"again.bmp": one_colour(64, "BMP")}
    of = {hashlib.sha256(content).hexdigest(): name for name, content in plain.items()}
    shown = {name: thumbnail(Image.open(io.BytesIO(content))) for name, content in plain.items()}
    made = datums.run("all", plain, IMAGE_SIZE="8")
    chosen = of[min(of)]
    assert shown_at(made, src("all")) == shown[chosen]
    further = {sha256 for sha256, name in of.items() if shown[name] != shown[chosen]}
    assert len(made) == 2 + len(further) >= 4
    for sha256 in further:
        assert shown_at(made, sha256) == shown[of[sha256]]


@pytest.mark.parametrize(("part", "digits"), [(60, 0), (59, 1), (3, 2)])
def test_a_datum_with_many_pictures_is_parts_of_its_own_sorted_and_merged(
    part: int, digits: int, datums: Datums, tmp_path: Path
) -> None:
    datums.part = part
    content = {f"{number}.png": picture(number) for number in range(60)}
    content |= {f"again/{number}.bmp": picture(number, "BMP") for number in range(0, 60, 7)}
    made = datums.run("all", content)
    bare = {id_of(each): each for each in map(pixels_in, content.values())}
    seen: dict[str, list[str]] = {}
    for directory in sorted((tmp_path / "1.out" / "library").iterdir()):
        (pack,) = map(read_pack, directory.glob("*.pack"))
        ids = [each.id for each in pack.pictures]
        assert ids == sorted(set(ids))
        assert pack.framing.side == 96
        assert np.array_equal(pixels_of(pack), [as_compared(bare[each]) for each in ids])
        assert {src("all") + f".{each[:digits]}" * bool(digits) for each in ids} == {directory.name}
        seen |= {each.id: [source.path for source in each.sources] for each in pack.pictures}
        shown = f"thumbnails/{part_names.directory(directory.name)}/{directory.name}/{src('all')}.thumbnails"
        files = thumbnail_files.ThumbnailFiles((tmp_path / "1.out" / shown).parent)
        places = thumbnail_files.places(src("all"), [each.thumbnail_size for each in pack.pictures])
        for id, place in zip(ids, places, strict=True):
            assert files.read(place) == thumbnail(Image.fromarray(bare[id]))
        assert sum(place.size for place in places) == len(made[shown])
    assert len(seen) == 60
    assert sorted(path for paths in seen.values() for path in paths) == sorted(f"all/{name}" for name in content)
    assert ["all/7.png", "all/again/7.bmp"] in seen.values()
    assert len({Path(name).stem for name in made}) == 1


def test_the_same_datum_gives_the_same_bytes_anywhere(datums: Datums) -> None:
    content = {f"{number}.png": picture(number, size=(50 + number, 70)) for number in range(12)} | {
        "bad": b"bad",
        "x": b"",
    }
    shuffled = list(content.items())
    random.Random(1).shuffle(shuffled)
    assert datums.run("d", content) == datums.run("d", dict(shuffled))
    assert datums.run("e", content).keys().isdisjoint(datums.run("d", content))


def test_another_file_in_an_archive_changes_no_other_part(datums: Datums) -> None:
    datums.part = 4

    content = {f"{number}.png": picture(number) for number in range(8)}
    before = datums.run("z.zip", zipped(content))
    after = datums.run("z.zip", zipped(content | {"9.png": picture(9)}))
    added = np.asarray(Image.open(io.BytesIO(picture(9))))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert parts_of(changed) == {f"{src('z.zip')}.{id_of(added)[0]}"}
    assert len(changed) == 2


def test_bad_files_are_recorded_and_the_datum_succeeds(datums: Datums, tmp_path: Path) -> None:
    made = datums.run("n%5B1%5D", {"good.png": picture(1), "b.png": picture(2)[:500], "a.txt": b"no", "empty": b""})
    path = f"rejected/images/{src('n%5B1%5D')}.jsonl"
    assert sorted(name.split("/")[0] for name in made) == ["library", "rejected", "thumbnails"]
    rejections = read_rejections(tmp_path / "1.out" / path)
    assert [each.source for each in rejections] == ["n[1]/a.txt", "n[1]/b.png", "n[1]/empty"]
    assert {each.stage for each in rejections} == {"preprocess"}
    assert [line.split(b",")[0] for line in made[path].splitlines()][2] == b'{"reason":"the file is empty"'


def test_only_a_bad_file_leaves_only_its_record(datums: Datums) -> None:
    assert list(datums.run("a.png", b"no picture")) == [f"rejected/images/{src('a.png')}.jsonl"]


def test_a_query_entry_has_all_its_pictures_in_one_pack(datums: Datums, tmp_path: Path) -> None:
    made = datums.run("holi%20day", {"%names": b"a", "a.png": picture(1), "b.png": picture(2), "c": b"bad"}, "queries")
    key = src("holi%20day")
    assert sorted(made) == [
        f"queries/holi%20day/{key}.pack",
        f"queries/holi%20day/{key}.rejected.jsonl",
        f"queries/holi%20day/{key}.thumbnails",
        f"rejected/queries/{key}.jsonl",
    ]
    assert made[f"queries/holi%20day/{key}.rejected.jsonl"] == made[f"rejected/queries/{key}.jsonl"]
    pack = read_pack(tmp_path / "1.out" / f"queries/holi%20day/{key}.pack")
    bare = sorted((pixels_in(picture(seed)) for seed in (1, 2)), key=id_of)
    assert [each.id for each in pack.pictures] == list(map(id_of, bare))
    shown = [thumbnail(Image.fromarray(each)) for each in bare]
    assert made[f"queries/holi%20day/{key}.thumbnails"] == b"".join(shown)
    assert [each.thumbnail_size for each in pack.pictures] == list(map(len, shown))


def test_an_entry_without_a_good_picture_still_has_its_pack(datums: Datums, tmp_path: Path) -> None:
    made = datums.run("q.jpg", b"not a picture", "queries")
    pack = read_pack(tmp_path / "1.out" / f"queries/q.jpg/{src('q.jpg')}.pack")
    assert pixels_of(pack).shape == (0, 96, 96, 3)
    assert made[f"queries/q.jpg/{src('q.jpg')}.thumbnails"] == b""
    assert pack.pictures == ()


@pytest.mark.parametrize("name", ["trip", "é" * 200])
def test_an_entry_says_what_is_asked_about_its_pictures(name: str, datums: Datums, tmp_path: Path) -> None:
    entry, _, below = pfs_names.escape_component(name).partition("/")
    files = {"question.json": b'{"max_distance": 1, "k": 2}', "a.png": picture(1), "b/question.json": b"{}"}
    made = datums.run(entry, {f"{below}/{file}".lstrip("/"): content for file, content in files.items()}, "queries")
    assert made[f"queries/{entry}/{src(entry)}.question.json"] == b'{"k": 2, "max_distance": 1.0}\n'
    (pack,) = map(read_pack, (tmp_path / "1.out" / "queries" / entry).glob("*.pack"))
    assert [each.sources[0].path for each in pack.pictures] == [f"{name}/a.png"]
    (rejected,) = made[f"rejected/queries/{src(entry)}.jsonl"].splitlines()
    assert json.loads(rejected)["source"] == f"{name}/b/question.json"


@pytest.mark.parametrize("question", [b"{", b'{"k": 0}', b'{"metric": "cosine"}', b'{"filter": "[z-a]"}'])
def test_an_entry_with_a_question_that_cannot_be_answered_is_rejected(
    question: bytes, datums: Datums, tmp_path: Path
) -> None:
    made = datums.run("trip", {"question.json": question, "a.png": picture(1)}, "queries")
    key = src("trip")
    (rejected,) = map(json.loads, made[f"queries/trip/{key}.rejected.jsonl"].splitlines())
    assert (rejected["source"], rejected["stage"]) == ("trip/question.json", "preprocess")
    assert "Nothing of this entry is searched for" in rejected["reason"]
    assert made[f"queries/trip/{key}.rejected.jsonl"] == made[f"rejected/queries/{key}.jsonl"]
    assert read_pack(tmp_path / "1.out" / f"queries/trip/{key}.pack").pictures == ()
    assert f"queries/trip/{key}.question.json" not in made


def test_the_words_of_an_entry_are_queries_beside_its_pictures(datums: Datums, tmp_path: Path) -> None:
    asked = b'{"k": 2, "text": "a red  bicycle", "without": ["snow"]}'
    files = {"question.json": asked, "a.png": picture(1), "b/c.TXT": "雪 🚲\n".encode(), "d.txt": b"\xff\xfe"}
    made = datums.run("trip", files, "queries")
    key = src("trip")
    assert made[f"queries/trip/{key}.question.json"] == b'{"k": 2}\n'
    texts = query_texts.read(tmp_path / "1.out" / "queries" / "trip")
    assert {(each.text, each.without, each.sources[0].path) for each in texts} == {
        ("a red bicycle", ("snow",), "trip/question.json"),
        ("雪 🚲", ("snow",), "trip/b/c.TXT"),
    }
    assert [each.id for each in texts] == sorted({each.id for each in texts})
    (rejected,) = map(json.loads, made[f"rejected/queries/{key}.jsonl"].splitlines())
    assert (rejected["source"], rejected["reason"]) == ("trip/d.txt", "this text is not UTF-8: save it as UTF-8")
    assert len(read_pack(tmp_path / "1.out" / f"queries/trip/{key}.pack").pictures) == 1
    again = datums.run("trip", files, "queries")
    assert again == made


def test_a_file_of_words_is_an_entry_and_no_picture_of_the_library(datums: Datums, tmp_path: Path) -> None:
    datums.run("snow.txt", b"\xef\xbb\xbfsnow", "queries")
    (text,) = query_texts.read(tmp_path / "1.out" / "queries" / "snow.txt")
    assert (text.text, text.sources[0].path) == ("snow", "snow.txt")
    made = datums.run("snow.txt", b"snow")
    assert b"neither JPEG" in made[f"rejected/images/{src('snow.txt')}.jsonl"]


def test_the_library_has_no_questions(datums: Datums) -> None:
    made = datums.run("trip", {"question.json": b"{}", "a.png": picture(1)})
    (rejected,) = map(json.loads, made[f"rejected/images/{src('trip')}.jsonl"].splitlines())
    assert rejected["source"] == "trip/question.json"


def test_a_query_with_a_name_too_long_for_one_component_is_one_entry(datums: Datums, tmp_path: Path) -> None:
    path = pfs_names.escape_component("é" * 200 + ".png")
    assert "/" in path
    entry, _, below = path.partition("/")
    datums.run(entry, {below: picture(1)}, "queries")
    (pack,) = map(read_pack, (tmp_path / "1.out" / "queries" / entry).glob("*.pack"))
    assert pack.pictures[0].sources[0].path == "é" * 200 + ".png"


@pytest.mark.parametrize(("fit", "size"), [("pad", (96, 48)), ("crop", (96, 96))])
def test_the_fit_is_a_parameter(fit: str, size: tuple[int, int], datums: Datums, tmp_path: Path) -> None:
    packed, _ = datums.run("a", picture(1, size=(200, 100)), FIT=fit)
    pack = read_pack(tmp_path / "1.out" / packed)
    assert (pack.framing.fit, pack.pictures[0].size) == (fit, size)
    assert pixels_of(pack).shape == (1, 96, 96, 3)


def test_by_default_the_whole_picture_is_scaled_to_224_pixels(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(picture(1, size=(300, 600)))
    preprocess.start({})(Datum({"images": DatumInput("images", tmp_path / "in", "a", "c")}, tmp_path / "out"))
    (pack,) = map(read_pack, (tmp_path / "out" / "library").glob("*/*.pack"))
    assert (pack.framing.fit, pixels_of(pack).shape, pack.pictures[0].size) == ("pad", (1, 224, 224, 3), (112, 224))


def test_packs_of_photographs_are_a_fifth_of_their_pixels(datums: Datums) -> None:
    """Every picture of a library is stored so, and this is most of the library's state."""
    files = {}
    for name in list(PHOTOGRAPHS)[:8]:
        file = io.BytesIO()
        open_photograph(name).convert("RGB").save(file, "PNG")
        files[f"{name}.png"] = file.getvalue()
    made = datums.run("all", files, IMAGE_SIZE="224")
    packs = sum(len(data) for name, data in made.items() if name.endswith(".pack"))
    assert packs < len(files) * 224 * 224 * 3 / 5


def test_the_picture_size_is_a_parameter(datums: Datums, tmp_path: Path) -> None:
    made = datums.run("a", picture(1), IMAGE_SIZE="32")
    (packed,) = [name for name in made if name.endswith(".pack")]
    assert read_pack(tmp_path / "1.out" / packed).framing.side == 32


@pytest.mark.parametrize(
    ("name", "value"),
    [("IMAGE_SIZE", "0"), ("IMAGE_SIZE", "big"), ("PART", "0")],
)
def test_bad_parameters_are_named(name: str, value: str) -> None:
    with pytest.raises(StageError, match=rf"^{name}='{value}': must be a whole number from"):
        preprocess.start({name: value})


def test_a_bad_fit_is_named() -> None:
    with pytest.raises(StageError, match=r"^FIT='stretch': must be one of pad, crop; change it in the spec's env$"):
        preprocess.start({"FIT": "stretch"})


def test_wrong_inputs_in_the_spec_are_reported(tmp_path: Path) -> None:
    process = preprocess.start({})
    with pytest.raises(StageError, match="one input, named images or queries; this datum has pictures"):
        process(Datum({"pictures": DatumInput("pictures", tmp_path, "", "")}, tmp_path))
    with pytest.raises(StageError, match=r'glob must be "/\*"'):
        process(Datum({"queries": DatumInput("queries", tmp_path, "", "")}, tmp_path))
