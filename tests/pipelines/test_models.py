"""Pushing a backbone: made in another process, written in one commit, and not at all when it is there already."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.errors import LookalikeError
from pipelines.models import make, parse_or_none, same_model
from stages.backbonespec import MODEL_FILE, SPEC_FILE, BackboneSpec, Weights, format_spec

SPEC = BackboneSpec("small", 32, "avg", 4, 32, "float32", Weights("a test", "0" * 64), "1" * 64)


def test_a_description_that_cannot_be_read_counts_as_none() -> None:
    assert parse_or_none(format_spec(SPEC).encode()) == SPEC
    assert parse_or_none(format_spec(replace(SPEC, name="another")).encode()) != SPEC
    assert parse_or_none(None) is None
    assert parse_or_none(b"") is None
    assert parse_or_none(b"{}") is None


def test_a_model_is_the_same_byte_by_byte(tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).write_bytes(b"the model")
    assert same_model(b"the model", tmp_path)
    assert not same_model(b"the modem", tmp_path)
    assert not same_model(None, tmp_path)


def test_making_one_leaves_two_files_and_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "stages").mkdir()  # a folder of the user's that is named like our package
    (tmp_path / "stages" / "zoo.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    spec = make("efficientnet-lite0", 64, None, tmp_path / "out")
    assert (spec.name, spec.image_size) == ("efficientnet-lite0", 64)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {MODEL_FILE, SPEC_FILE}
    with pytest.raises(LookalikeError, match="^there is no backbone and no file named -x.keras; the backbones are"):
        make("-x.keras", None, None, tmp_path / "out")
