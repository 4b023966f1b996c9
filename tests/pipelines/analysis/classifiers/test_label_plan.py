"""Labels of pictures that are to be added: folders, archives, files of labels, and what has none."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from pipelines.analysis.classifiers import label_plan
from pipelines.analysis.classifiers.label_plan import LabelPlan
from pipelines.errors import LookalikeError
from pipelines.library import picture_sources
from stages.record import label_files
from tests.example_counts import examples
from tests.small_archives import zipped


def picture(colour: int = 0) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (colour, 0, 0)).save(file, "PNG")
    return file.getvalue()


def write(directory: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def archive(*names: str) -> bytes:
    return zipped({name: b"words" if name.endswith(".txt") else picture() for name in names})


def plan(*arguments: Path, files: tuple[Path, ...] = ()) -> LabelPlan:
    return label_plan.plan(arguments, picture_sources.find(arguments, beside=label_plan.LABELS_FILE.__eq__), files)


def test_folders_are_labels_also_in_archives(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pets/cat/1.png": picture(),
            "pets/cat/notes.txt": b"words",
            "pets/dog/2.png": picture(),
            "pets/dog/more.zip": archive("3.png", "puppy/4.png", "puppy/readme.txt"),
            "pets/top.png": picture(),
        },
    )
    made = plan(tmp_path / "pets")
    assert made.of == {
        "pets/cat/1.png": "cat",
        "pets/dog/2.png": "dog",
        "pets/dog/more.zip/3.png": "dog",
        "pets/dog/more.zip/puppy/4.png": "puppy",
        "pets/top.png": "pets",
    }
    assert [each.name for each in made.sources] == [
        *("pets/cat/1.png", "pets/dog/2.png", "pets/dog/more.zip", "pets/top.png")
    ]
    (content,) = made.contents().values()
    assert label_files.unite([("x.csv", content)]).of == made.of


def test_an_archive_alone_has_labels_where_it_has_folders(tmp_path: Path) -> None:
    write(tmp_path, {"pets.zip": archive("cat/1.png", "2.png")})
    made = plan(tmp_path / "pets.zip")
    assert made.of == {"pets.zip/cat/1.png": "cat"}
    assert made.unlabelled == ["pets.zip/2.png"]


def test_a_file_of_labels_in_a_folder_takes_the_place_of_its_folders(tmp_path: Path) -> None:
    rows = b"source,label\na/1.png,red\nset/2.png,blue\ngone.png,red\nbroken\n"
    write(
        tmp_path, {"set/a/1.png": picture(), "set/2.png": picture(), "set/b/3.png": picture(), "set/labels.csv": rows}
    )
    made = plan(tmp_path / "set")
    assert made.of == {"set/a/1.png": "red", "set/2.png": "blue"}
    assert made.unlabelled == ["set/b/3.png"]
    assert made.elsewhere == ["gone.png"]
    assert made.problems == ["labels.csv, line 5: a line needs a source and a label; this one has 1 of the columns"]
    assert "set/labels.csv" not in [each.name for each in made.sources]


def test_a_named_file_gives_all_labels(tmp_path: Path) -> None:
    rows = "source,label\n1.png,red\npets.zip/cat/1.png,blue\ncat/2.png,green\nold/9.png,red\n"
    write(tmp_path, {"set/1.png": picture(), "pets.zip": archive("cat/1.png", "cat/2.png"), "mine.csv": rows.encode()})
    made = plan(tmp_path / "set", tmp_path / "pets.zip", files=(tmp_path / "mine.csv",))
    assert made.of == {"set/1.png": "red", "pets.zip/cat/1.png": "blue", "pets.zip/cat/2.png": "green"}
    assert made.elsewhere == ["old/9.png"]
    assert [*made.files] == [label_plan.file_name(tmp_path / "mine.csv")]


def test_a_folder_has_its_own_file_of_labels(tmp_path: Path) -> None:
    write(tmp_path, {"a/pets/cat/1.png": picture(), "b/pets/dog/2.png": picture()})
    first, second = (plan(tmp_path / each / "pets") for each in "ab")
    assert first.files.keys().isdisjoint(second.files)
    assert all(name.startswith("pets-") and name.endswith(".csv") for name in (*first.files, *second.files))
    both = plan(tmp_path / "a" / "pets", tmp_path / "b" / "pets")
    assert both.files == first.files | second.files
    assert plan(tmp_path / "a" / "pets").files == first.files


@pytest.mark.parametrize(
    ("files", "arguments", "labels_file", "said"),
    [
        ({"1.png": picture()}, ["1.png"], None, "there is no label, so nothing was put: put the pictures into folders"),
        ({"d/1.png": picture(), "m.csv": b"source,label\n"}, ["d"], "m.csv", "the file has no labels, only a header"),
        ({"d/1.png": picture(), "m.csv": b"1.png,cat\n"}, ["d"], "m.csv", "so nothing was put: m.csv, line 1: the"),
        ({"d/1.png": picture()}, ["d"], "gone.csv", "gone.csv cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_without_labels_it_says_how_to_give_some(
    tmp_path: Path, files: dict[str, bytes], arguments: list[str], labels_file: str | None, said: str
) -> None:
    write(tmp_path, files)
    with pytest.raises(LookalikeError) as refused:
        plan(*(tmp_path / each for each in arguments), files=(tmp_path / labels_file,) if labels_file else ())
    assert said in str(refused.value)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda text: text not in (".", "..") and not text.startswith("._") and text.strip() == text
)


@given(folders=st.lists(NAMES, min_size=1, max_size=3, unique=True))
@settings(max_examples=examples(25), deadline=None)
def test_the_labels_of_folders_are_read_back(tmp_path_factory: pytest.TempPathFactory, folders: list[str]) -> None:
    home = tmp_path_factory.mktemp("any")
    write(home, {f"top/{folder}/1.png": picture() for folder in folders})
    made = plan(home / "top")
    (content,) = made.contents().values()
    united = label_files.unite([("x.csv", content)])
    assert united.of == made.of and not united.problems
    assert set(made.of) | set(made.unlabelled) == {each.name for each in made.sources}
