"""The partition stage on plain directories: what features and preprocess wrote of a bucket goes to the segments."""

import random
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from stages import index, partition
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import PartTable, placed
from stages.files.thumbnail_files import ThumbnailFiles
from stages.record import part_names
from stages.record.sources import Source, unite
from tests.example_counts import examples
from tests.stages.embedded_parts import (
    DIMENSION,
    Library,
    Paths,
    id_of,
    jpeg,
    of_one_bucket,
    smallest,
    source,
    table,
    united,
    unmasked,
    vector,
    vectors_of,
    write,
    write_masks,
    write_part,
)
from tests.stages.file_trees import tree

LIBRARY: Library = {
    "0123456789abcdef.0": {"0123456789abcdef": {number: [f"set/{number}.png"] for number in range(40)}},
    "0123456789abcdef.1": {"0123456789abcdef": {number: [f"set/{number}.png"] for number in range(40, 50)}},
    "aaaa": {"aaaa": {50: ["lone.png"]}},
    "bbbb": {"bbbb": {51: ["two.png", "copy/two.png"], 7: ["again/7.png"]}},
}


def buckets(root: Path, depth: int = 1) -> list[str]:
    """The buckets of the parts, as globs of that depth find them."""
    library = root / "library"
    return sorted(path.relative_to(library).as_posix() for path in library.glob("/".join("*" * depth)))


def datum(root: Path, bucket: str, out: Path, *more: str) -> Datum:
    """more: the names of further inputs. Masks are one if there are any."""
    inputs = {
        name: DatumInput(name, root / above / bucket, f"{above}/{bucket}", "")
        for name, above in (("features", "library"), *((each, each) for each in ("thumbnails", "masks", *more)))
    }
    return Datum({name: each for name, each in inputs.items() if name != "masks" or each.path.exists()}, out)


def run(root: Path, out: Path, depth: int = 1, **environment: str) -> Path:
    """Deals every bucket; returns the output."""
    process = partition.start(environment)
    for bucket in buckets(root, depth):
        process(datum(root, bucket, out))
    return out


class Row(NamedTuple):
    """All that belongs to a picture."""

    sources: Sequence[Source]
    hash: int
    vector: list[float]
    thumbnail: bytes


def dealt(out: Path, segment: str, bucket: str) -> dict[str, Row]:
    """The pictures of a bucket in a segment, by id."""
    images = ImageTable.read(out / "library" / segment / f"{bucket}.parquet")
    vectors = np.load(out / "vectors" / segment / f"{bucket}.npy")
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(images), DIMENSION))
    file = out / "thumbnails" / segment / f"{bucket}.thumbnails"
    assert file.stat().st_size == sum(images.thumbnail_sizes)
    thumbnails = map(ThumbnailFiles(file.parent).read, thumbnail_files.places(bucket, images.thumbnail_sizes))
    rows = map(Row, images.sources, images.hashes, vectors.tolist(), thumbnails)
    return dict(zip(images.ids, rows, strict=True))


def expected(pictures: Mapping[int, Paths], prefix: str = "") -> dict[str, Row]:
    """The same of these pictures, if their ids have the prefix."""
    return {
        id_of(number): Row(
            unite(map(source, paths)), number, np.array(vector(number), np.float32).tolist(), jpeg(smallest(paths))
        )
        for number, paths in pictures.items()
        if id_of(number).startswith(prefix)
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Parts of LIBRARY, those of one datum in one bucket."""
    found = write(tmp_path / "root", LIBRARY)
    assert len(buckets(found)) == 3
    return found


def parts_in(library: Library, bucket: str) -> list[str]:
    """The parts of a bucket, at any depth."""
    return [part for part in library if part_names.directory(part).startswith(bucket)]


@pytest.mark.parametrize("digits", [1, 2])
def test_the_pictures_of_a_bucket_are_dealt_to_segments_with_all_that_belongs_to_them(
    digits: int, root: Path, tmp_path: Path
) -> None:
    out = run(root, tmp_path / "out", SEGMENT_DIGITS=str(digits))
    found = set()
    for bucket in buckets(root):
        pictures = united(LIBRARY, parts_in(LIBRARY, bucket))
        for segment in {id_of(number)[:digits] for number in pictures}:
            here = dealt(out, segment, bucket)
            assert list(here) == sorted(here)
            assert here == expected(pictures, segment)
            kinds = {"library": ".parquet", "vectors": ".npy", "thumbnails": ".thumbnails"}
            found |= {f"{kind}/{segment}/{bucket}{suffix}" for kind, suffix in kinds.items()}
    assert tree(out).keys() == found


def test_the_facts_of_the_vectors_stay(tmp_path: Path) -> None:
    for number, part in enumerate(of_one_bucket(3, "3f")):
        write_part(tmp_path / "in", part, {"aaaa": {number: ["a.png"]}}, ("NVIDIA L4", "cpu")[number % 2])
    partition.start({})(datum(tmp_path / "in", "3f", tmp_path / "out"))
    for path in (tmp_path / "out").rglob("*.parquet"):
        images = ImageTable.read(path)
        assert images.origin.comparable(table({}).origin)
        assert (images.origin.backbone, images.origin.devices) == ("small at 96 px", ("NVIDIA L4", "cpu"))


def computed_on_jax(root: Path, part: str) -> None:
    path = root / "library" / part_names.directory(part) / f"{part}.parquet"
    written = PartTable.read(path)
    replace(written, origin=replace(written.origin, backend="jax")).write(path)


def test_vectors_of_two_backends_are_refused_and_those_of_one_say_so_at_the_end(tmp_path: Path) -> None:
    one, two = of_one_bucket(2, "3f")
    write_part(tmp_path / "in", one, {"aaaa": {1: ["a.png"]}})
    write_part(tmp_path / "in", two, {"aaaa": {2: ["b.png"]}})
    computed_on_jax(tmp_path / "in", two)
    said = r"one part of the pictures was computed on \w+, another on \w+: .*KERAS_BACKEND.*--reprocess features"
    with pytest.raises(StageError, match=said):
        partition.start({})(datum(tmp_path / "in", "3f", tmp_path / "refused"))
    computed_on_jax(tmp_path / "in", one)
    partition.start({})(datum(tmp_path / "in", "3f", tmp_path / "out"))
    origins = {ImageTable.read(path).origin.backend for path in (tmp_path / "out").rglob("*.parquet")}
    assert origins == {"jax"}


def test_equal_content_gives_equal_bytes_in_any_order_and_however_it_is_divided(tmp_path: Path) -> None:
    names = of_one_bucket(6, "3f")
    pictures = {number: [f"{number}.png", f"copy/{number}.png"][: 1 + number % 2] for number in range(50)}
    one = run(write(tmp_path / "one", {names[0]: {"aaaa": pictures}}), tmp_path / "one.out")
    shuffled, chosen = list(pictures.items()), random.Random(1)
    for number in range(3):
        chosen.shuffle(shuffled)
        library: dict[str, dict[str, dict[int, Paths]]] = {}
        for picture, paths in shuffled:
            for path in chosen.sample(paths, len(paths)):
                pack = library.setdefault(chosen.choice(names), {}).setdefault(chosen.choice("xyz"), {})
                pack[picture] = [*pack.get(picture, []), path]
        other = run(write(tmp_path / f"{number}", library), tmp_path / f"{number}.out")
        assert tree(other) == tree(one)


def test_a_datum_is_a_bucket_of_either_level(root: Path, tmp_path: Path) -> None:
    """/library/3f with the parts in 3f/a, or /library/3f/a, whose files are named 3f-a."""
    names = [*of_one_bucket(2, "3f/a"), *of_one_bucket(2, "3f/0")]
    library = {name: {"aaaa": {number: [f"{number}.png"]}} for number, name in enumerate(names)}
    library[names[0]]["aaaa"][3] = ["another/3.png"]
    write(tmp_path / "in", library)
    one, two = (run(tmp_path / "in", tmp_path / f"{depth}", depth) for depth in (1, 2))
    assert {Path(name).stem for name in tree(one)} == {"3f"}
    assert {Path(name).stem for name in tree(two)} == {"3f-0", "3f-a"}
    for segment in (tmp_path / "1" / "library").iterdir():
        assert dealt(one, segment.name, "3f") == expected(united(library), segment.name)
    for bucket, path in (("3f-a", "another/3.png"), ("3f-0", "3.png")):
        assert dealt(two, id_of(3)[0], bucket)[id_of(3)] == expected({3: [path]})[id_of(3)]


drawn_paths = st.sampled_from([f"{directory}/{name}.png" for directory in "ab" for name in range(4)])
drawn_packs = st.dictionaries(
    st.sampled_from(["aaaa", "bbbb"]),
    st.dictionaries(st.integers(0, 25), st.lists(drawn_paths, min_size=1), min_size=1, max_size=6),
    min_size=1,
)
SOURCES = [name for bucket in ("3f/a", "3f/0", "07") for name in of_one_bucket(2, bucket)]
drawn_parts = st.sampled_from([*SOURCES, *(f"{name}.{digit}" for name in SOURCES[:2] for digit in "0f")])
drawn_masks = st.dictionaries(st.sampled_from(SOURCES), st.sets(drawn_paths), max_size=4)
drawn_libraries = st.dictionaries(drawn_parts, drawn_packs, min_size=1, max_size=4)


@settings(max_examples=examples(20), deadline=None)
@given(drawn_libraries, drawn_masks, st.sampled_from([1, 2]), st.sampled_from([1, 2]))
def test_an_index_of_masked_buckets_is_that_of_one_table_of_what_they_leave(
    library: Library, masks: Mapping[str, Collection[str]], digits: int, depth: int
) -> None:
    left = unmasked(library, masks)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write_masks(write(root / "in", library), masks)
        parted = run(root / "in", root / "out", depth, SEGMENT_DIGITS=str(digits))
        whole = as_one_table(root / "whole", united(left), digits)
        fresh = run(write(root / "anew", left), root / "fresh", depth, SEGMENT_DIGITS=str(digits))
        assert tree(parted) == tree(fresh)
        written = [indexed(each, root / f"{each.name}.index") for each in (parted, whole)]
        assert {name.split("/")[0] for name in written[0]} == {id_of(each)[:digits] for each in united(left)}
        assert written[0] == written[1]


def as_one_table(out: Path, pictures: Mapping[int, Paths], digits: int) -> Path:
    """The output of partition, as of a single bucket."""
    for segment in {id_of(number)[:digits] for number in pictures}:
        here = {number: paths for number, paths in pictures.items() if id_of(number).startswith(segment)}
        for kind in ("library", "vectors"):
            (out / kind / segment).mkdir(parents=True)
        table(here).write(out / "library" / segment / "all.parquet")
        np.save(out / "vectors" / segment / "all.npy", vectors_of(here))
        thumbnails = [jpeg(smallest(here[number])) for number in sorted(here, key=id_of)]
        thumbnail_files.write(out / "thumbnails" / segment / "all.thumbnails", thumbnails)
    return out


def indexed(partitioned: Path, out: Path) -> dict[str, bytes]:
    """The files of an index of these segments."""
    process, segments = index.start({"CUDA_VISIBLE_DEVICES": ""}), partitioned / "library"
    for segment in sorted(segments.iterdir()) if segments.exists() else ():
        process(datum(partitioned, segment.name, out, "vectors"))
    return tree(out)


def test_a_mask_of_nothing_that_is_there_does_nothing(root: Path, tmp_path: Path) -> None:
    before = tree(run(root, tmp_path / "before"))
    write_masks(root, {"aaaa": ["set/1.png", "unknown.png"], "cccc": ["lone.png"]})
    assert tree(run(root, tmp_path / "after")) == before
    alone = DatumInput("masks", root / "masks", "library/21", "")
    partition.start({})(Datum({"masks": alone}, tmp_path / "alone"))
    assert tree(tmp_path / "alone") == {}


def test_a_bucket_of_which_masks_leave_nothing_has_no_output(root: Path, tmp_path: Path) -> None:
    write_masks(root, {"aaaa": ["lone.png"]})
    bucket = part_names.directory("aaaa").partition("/")[0]
    assert bucket in {Path(name).stem for name in tree(run(write(tmp_path / "all", LIBRARY), tmp_path / "before"))}
    assert bucket not in {Path(name).stem for name in tree(run(root, tmp_path / "after"))}


def test_a_damaged_mask_is_named_and_hides_nothing_silently(root: Path, tmp_path: Path) -> None:
    write_masks(root, {"aaaa": ["lone.png"]})
    (mask,) = root.rglob("*.jsonl")
    mask.write_bytes(b"lone.png\n")
    with pytest.raises(
        StageError, match="^the mask aaaa.jsonl: line 1 is not a JSON string: .* put it again, .* masks$"
    ):
        run(root, tmp_path / "out")


def test_a_missing_input_is_named(root: Path, tmp_path: Path) -> None:
    (bucket, *_) = buckets(root)
    whole = datum(root, bucket, tmp_path / "out")
    inputs = {other: each for other, each in whole.inputs.items() if other != "thumbnails"}
    with pytest.raises(StageError, match="^the input thumbnails is missing: .* lookalike deploy --reprocess prepro"):
        partition.start({})(Datum(inputs, tmp_path / "out"))


def test_before_the_first_model_there_is_nothing_to_deal(root: Path, tmp_path: Path) -> None:
    (bucket, *_) = buckets(root)
    inputs = datum(root, bucket, tmp_path / "out").inputs
    partition.start({})(Datum({"thumbnails": inputs["thumbnails"]}, tmp_path / "out"))
    assert tree(tmp_path / "out") == {}


@pytest.mark.parametrize("repo_path", ["", "library", "3f", "thumbnails/3f"])
def test_a_wrong_glob_is_named(repo_path: str, root: Path, tmp_path: Path) -> None:
    (bucket, *_) = buckets(root)
    whole = datum(root, bucket, tmp_path / "out")
    features = replace(whole.inputs["features"], repo_path=repo_path)
    with pytest.raises(
        StageError, match=rf"^the input features is /{repo_path}; .* /library/<bucket>: correct its glob"
    ):
        partition.start({})(replace(whole, inputs={**whole.inputs, "features": features}))


@pytest.mark.parametrize("digits", ["many", "0", "9", "1.5", "-1"])
def test_a_bad_number_of_digits_is_named(digits: str) -> None:
    with pytest.raises(StageError, match=rf"^SEGMENT_DIGITS='{digits}': must be a whole number from 1 to 8; change it"):
        partition.start({"SEGMENT_DIGITS": digits})


def test_a_directory_without_pictures_is_named(tmp_path: Path) -> None:
    (tmp_path / "library" / "3f" / "a").mkdir(parents=True)
    (tmp_path / "thumbnails" / "3f").mkdir(parents=True)
    with pytest.raises(StageError, match="^3f does not hold pictures: .* that the features stage wrote"):
        partition.start({})(datum(tmp_path, "3f", tmp_path / "out"))


@pytest.fixture
def bucket(tmp_path: Path) -> tuple[Datum, Path, Path]:
    """A datum of one part, its table and its file of thumbnails."""
    (name,) = of_one_bucket(1, "3f/a")
    write(tmp_path / "in", {name: {"aaaa": {number: [f"{number}.png"] for number in range(3)}}})
    given = datum(tmp_path / "in", "3f", tmp_path / "out")
    shown = given.inputs["thumbnails"].path / "a" / name / "aaaa.thumbnails"
    return given, given.inputs["features"].path / "a" / f"{name}.parquet", shown


def test_missing_thumbnails_are_named(bucket: tuple[Datum, Path, Path]) -> None:
    """A file, a part, a bucket; and a file where a directory should be."""
    given, _, shown = bucket
    reason = r"^aaaa\.thumbnails, a file of thumbnails, is missing: .* lookalike deploy --reprocess preprocess$"
    for gone in (shown, shown.parent, shown.parents[2]):
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        with pytest.raises(StageError, match=reason):
            partition.start({})(given)
    shown.parents[2].write_bytes(b"")
    with pytest.raises(StageError, match=reason):
        partition.start({})(given)


def test_truncated_thumbnails_are_named(bucket: tuple[Datum, Path, Path]) -> None:
    given, _, shown = bucket
    whole = shown.read_bytes()
    for length in (len(whole) - 1, 1, 0):
        shown.write_bytes(whole[:length])
        reason = "is not the file of thumbnails that its table describes: .* lookalike deploy --reprocess preprocess$"
        with pytest.raises(StageError, match=rf"/aaaa\.thumbnails {reason}"):
            partition.start({})(given)


def test_missing_vectors_are_named(bucket: tuple[Datum, Path, Path]) -> None:
    given, parquet, _ = bucket
    vectors = parquet.with_suffix(".npy")
    np.save(vectors, np.eye(2, 3, dtype=np.float32))
    with pytest.raises(StageError, match=f"^{vectors.name} does not have one vector .* --reprocess features$"):
        partition.start({})(given)
    vectors.unlink()
    with pytest.raises(StageError, match=rf"^{vectors.name} is missing"):
        partition.start({})(given)


def test_vectors_of_two_models_are_not_mixed(bucket: tuple[Datum, Path, Path]) -> None:
    given, parquet, _ = bucket
    places = PartTable.read(parquet).thumbnails
    pictures = {number: [f"{number}.png"] for number in range(3)}
    PartTable.of(table(pictures, model="beef" * 16), **placed(places)).write(parquet.with_name("another.parquet"))
    np.save(parquet.with_name("another.npy"), vectors_of(pictures))
    with pytest.raises(StageError, match=f"{'5eed' * 16}.*{'beef' * 16}|{'beef' * 16}.*{'5eed' * 16}"):
        partition.start({})(given)


def test_a_table_that_features_did_not_write_is_refused(bucket: tuple[Datum, Path, Path]) -> None:
    given, parquet, _ = bucket
    table({1: ["1.png"]}).write(parquet)  # as of features-9
    with pytest.raises(StageError, match=rf"^{parquet.name} is not a table .* it lacks thumbnail_part, .* --reprocess"):
        partition.start({})(given)
    for damaged in (parquet.read_bytes()[:-9], b"no table", b""):
        parquet.write_bytes(damaged)
        with pytest.raises(StageError, match=rf"^{parquet.name} is not a table that lookalike wrote"):
            partition.start({})(given)
