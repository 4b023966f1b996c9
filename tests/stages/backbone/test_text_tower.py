"""Text towers: equal bytes for a text alone or among others, and clear refusals of files that are not one."""

import json
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

from stages.backbone import export_proof
from stages.backbone.backbone_spec import TEXT_FILE
from stages.backbone.export_proof import TEXTS
from stages.backbone.text_tower import MOST_CHARACTERS, TextTower, load_text_tower
from stages.datum.contract import StageError
from tests.stages.text_towers import END, START, altered, small_network, small_tokenizer, write_text_tower


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text_tower(tmp_path_factory.mktemp("models")).parent


@pytest.fixture(scope="module")
def tower(written: Path) -> TextTower:
    found = load_text_tower(written)
    assert found is not None
    return found


def test_a_vector_depends_on_its_text_alone(tower: TextTower) -> None:
    vectors = tower.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), tower.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for row in (0, 3, len(TEXTS) - 1):
        assert tower.embed([TEXTS[row]]).tobytes() == vectors[row].tobytes()
    assert len(np.unique(vectors, axis=0)) == len(TEXTS)
    assert tower.embed([]).shape == (0, tower.dimension)


def test_vectors_are_those_of_the_proof(tower: TextTower, written: Path) -> None:
    proof = export_proof.read_text_proof(written / TEXT_FILE)
    assert proof is not None
    assert proof.origin == "a test"
    assert export_proof.apart(proof.vectors, tower.embed(TEXTS)) < 1e-5


def test_the_tokenizer_alone_normalises(tower: TextTower) -> None:
    one, same, other = tower.embed(["RED\u00a0 Caf\u00e9", "red cafe\u0301", "red cafe"])
    assert one.tobytes() == same.tobytes() != other.tobytes()


def test_what_is_beyond_the_context_is_named(tower: TextTower) -> None:
    assert tower.unread("red bicycle") == ""
    text = "red bicycle in snow " * 2500  # 10,000 words
    beyond = tower.unread(text)
    assert text.strip().endswith(beyond)
    assert beyond.startswith(("red", "bicycle", "in", "snow"))
    assert tower.unread(text[: text.rindex(beyond)]) == ""
    other = text[: text.rindex(beyond)] + "bicycle " * 100
    assert tower.unread(other).startswith("bicycle")
    assert tower.unread("雪" * 100) in "雪" * 99


def test_any_text_has_a_vector_or_a_refusal(tower: TextTower) -> None:
    tower.embed(["", "\x00\x1b", "\udcff", "\U0010ffff" * 100, "🚲" * 1000])
    with pytest.raises(StageError, match=r"a text of 100,001 characters is too long: at most 100,000"):
        tower.embed(["a" * (MOST_CHARACTERS + 1)])


def test_a_model_need_not_have_one(tmp_path: Path) -> None:
    assert load_text_tower(tmp_path) is None


def test_files_that_are_not_text_towers_are_refused(tmp_path: Path, written: Path) -> None:
    def refused(match: str) -> None:
        with pytest.raises(StageError, match=match):
            load_text_tower(tmp_path)

    path = tmp_path / TEXT_FILE
    path.write_bytes((written / TEXT_FILE).read_bytes()[:5000])
    refused("text-tower.keras cannot be loaded as a Keras model")

    small_network(600).save(path)
    refused("text-tower.keras has no tokenizer, so it is not a text tower: towers/README.md has one made")

    pixels = keras.Input((8, 8, 3))
    keras.Model(pixels, keras.layers.GlobalAveragePooling2D()(pixels)).save(path)
    refused(r"takes float32 \(None, 8, 8, 3\); a text tower takes the numbers of a fixed number of tokens")

    numbers = keras.Input((16,), dtype="int32")
    keras.Model(numbers, keras.layers.Dense(4)(numbers)).save(path)
    refused("does not look tokens up in one Embedding layer")

    path.unlink()
    small_network(100).save(path)
    export_proof.attach_text_proof(path, _proof(written), small_tokenizer().to_str())
    refused("does not belong to it: it knows 602 tokens, the network 100")


def _proof(written: Path) -> export_proof.TextProof:
    found = export_proof.read_text_proof(written / TEXT_FILE)
    assert found is not None
    return found


def test_tokenizers_that_do_not_belong_are_refused(tmp_path: Path, written: Path) -> None:
    right = small_tokenizer()

    def refused(content: str, match: str) -> None:
        path = tmp_path / TEXT_FILE
        path.unlink(missing_ok=True)
        with zipfile.ZipFile(written / TEXT_FILE) as source, zipfile.ZipFile(path, "w") as target:
            for name in ("config.json", "metadata.json", "model.weights.h5"):
                target.writestr(name, source.read(name))
        export_proof.attach_text_proof(path, _proof(written), content)
        with pytest.raises(StageError, match=match):
            load_text_tower(tmp_path)

    refused("{", "the tokenizer of text-tower.keras cannot be read: ")
    refused('{"model": 3}', "the tokenizer of text-tower.keras cannot be read: ")
    refused(altered(right, padding=None).to_str(), "gives 2 to 16 tokens, the network takes 16")
    refused(small_tokenizer(length=12).to_str(), "gives 12 to 12 tokens, the network takes 16")
    content = json.loads(right.to_str())
    content["model"]["vocab"][START] = content["model"]["vocab"].pop(END) + 1
    content["added_tokens"] = []
    refused(json.dumps(content), r"lacks special tokens of its own: <\|endoftext\|> \(601\), <\|startoftext\|> \(600\)")
