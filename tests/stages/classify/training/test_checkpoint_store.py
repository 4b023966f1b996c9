"""States survive in a directory and in a bucket; damaged, foreign and unreachable ones are told apart."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stages.classify.training.checkpoint_store import CheckpointStore, TrainingState
from stages.datum.contract import StageError
from stages.files.bucket import BadUrl
from tests import buckets
from tests.buckets import Bucket

FINGERPRINT = "ab" * 32
LOT = np.random.default_rng(0)
STATE = TrainingState(
    {
        "weights": LOT.normal(size=(7, 3)).astype(np.float32),
        "step": np.array(12, np.int64),
        "empty": np.empty((0, 4), np.float16),
    },
    {"epoch": 3, "curves": {"loss": [0.1, 1e-17]}, "name": "größer"},
)


def same(found: TrainingState | None, wanted: TrainingState) -> bool:
    assert found is not None
    assert found.facts == wanted.facts
    assert found.arrays.keys() == wanted.arrays.keys()
    for name, values in wanted.arrays.items():
        assert found.arrays[name].dtype == values.dtype
        assert np.array_equal(found.arrays[name], values)
    return True


@pytest.fixture(params=["directory", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a place for checkpoints that does not exist yet."""
    if request.param == "directory":
        yield f"file://{tmp_path}/some%20where/below"
    else:
        with buckets.serving():
            yield "s3://bucket/some/where"


def objects(url: str, tmp_path: Path) -> dict[str, bytes]:
    """All that lies at the place, by name."""
    if url.startswith("s3"):
        return {name.rpartition("/")[2]: content for name, content in Bucket.held.items()}
    return {path.name: path.read_bytes() for path in (tmp_path / "some where").rglob("*") if path.is_file()}


def test_the_last_state_is_found_until_it_is_deleted(url: str, tmp_path: Path) -> None:
    kept = CheckpointStore(url, "tuned", FINGERPRINT)
    assert kept.load() is None
    kept.save(TrainingState({}, {"epoch": 2}))
    kept.save(STATE)
    assert list(objects(url, tmp_path)) == [f"tuned-{FINGERPRINT[:32]}.checkpoint"]
    assert same(CheckpointStore(url, "tuned", FINGERPRINT).load(), STATE)
    kept.delete()
    assert kept.load() is None
    assert not objects(url, tmp_path)
    kept.delete()


def test_equal_states_are_equal_bytes_and_large_ones_survive(url: str, tmp_path: Path) -> None:
    large = TrainingState({"weights": LOT.normal(size=3_000_000)}, {})
    kept = CheckpointStore(url, "tuned", FINGERPRINT)
    kept.save(large)
    (before,) = objects(url, tmp_path).values()
    kept.save(large)
    assert [before] == list(objects(url, tmp_path).values())
    assert same(kept.load(), large)


def test_another_training_does_not_find_it(url: str) -> None:
    CheckpointStore(url, "tuned", FINGERPRINT).save(STATE)
    assert CheckpointStore(url, "tuned", "cd" * 32).load() is None
    assert CheckpointStore(url, "other", FINGERPRINT).load() is None


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:-1], "it is damaged"),
        (lambda content: content[:300], "it is damaged"),
        (lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:], "it is damaged"),
        (lambda content: b"", "it is not a checkpoint"),
        (lambda content: b"something else", "it is not a checkpoint"),
    ],
    ids=["short", "very short", "one bit", "empty", "foreign"],
)
def test_a_damaged_checkpoint_is_ignored_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: object, reason: str
) -> None:
    assert callable(damage)
    kept = CheckpointStore(f"file://{tmp_path}", "tuned", FINGERPRINT)
    kept.save(STATE)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert kept.load() is None
    said = capsys.readouterr().out
    assert f"is ignored: {reason}" in said
    assert "training starts from the beginning" in said
    kept.save(STATE)
    assert same(kept.load(), STATE)


def test_the_checkpoint_of_another_training_under_this_name_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = FINGERPRINT[:32] + "0" * 32
    CheckpointStore(f"file://{tmp_path}", "tuned", other).save(STATE)
    assert CheckpointStore(f"file://{tmp_path}", "tuned", FINGERPRINT).load() is None
    assert "it belongs to another training" in capsys.readouterr().out


def test_what_a_killed_process_was_writing_does_not_count_and_does_not_stay(tmp_path: Path) -> None:
    kept = CheckpointStore(f"file://{tmp_path}", "tuned", FINGERPRINT)
    kept.save(STATE)
    (tmp_path / f"tuned-{FINGERPRINT[:32]}.checkpoint#1").write_bytes(b"half of a st")
    assert same(kept.load(), STATE)
    kept.delete()
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_used_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StageError, match="^fine_tune.checkpoints is file://.*, but its bucket cannot be used: "):
        CheckpointStore(f"file://{tmp_path}/file/below", "tuned", FINGERPRINT)
    kept = CheckpointStore(f"file://{tmp_path}/runs", "tuned", FINGERPRINT)
    (tmp_path / "runs").rmdir()
    (tmp_path / "runs").write_bytes(b"")
    with pytest.raises(StageError, match=r"cannot be read: .*Check the address, the network and the credentials"):
        kept.load()
    with pytest.raises(StageError, match="cannot be written"):
        kept.save(STATE)


def test_a_bucket_that_does_not_answer_is_an_error_that_names_it() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        patch.setenv("AWS_ACCESS_KEY_ID", "id")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        with pytest.raises(StageError, match="in s3://bucket/runs, which fine_tune.checkpoints names, cannot be read"):
            CheckpointStore("s3://bucket/runs", "tuned", FINGERPRINT).load()


def test_a_place_that_fails_later_does_not_end_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "runs"
    kept = CheckpointStore(f"file://{place}", "tuned", FINGERPRINT)
    kept.save(STATE)
    kept.delete()
    place.rmdir()
    place.write_bytes(b"")
    kept.save(STATE)
    kept.delete()
    said = capsys.readouterr().out
    assert "cannot be written" in said
    assert "training goes on without it" in said
    assert "cannot be removed" in said


@pytest.mark.parametrize(
    "url",
    [
        "s3:///runs",
        "file://server/share",
        "file:///",
        "gs://",
        "ftp://server/runs",
        "s3://bucket/runs?region=x",
        "runs",
    ],
)
def test_a_url_that_names_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(BadUrl, match=r"is not the URL of|has no bucket"):
        CheckpointStore(url, "tuned", FINGERPRINT)


def test_google_and_azure_buckets_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    for url in ("gs://bucket/runs", "az://container/runs"):
        CheckpointStore(url, "tuned", FINGERPRINT)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(StageError, match="its bucket cannot be used: .*[Aa]ccount"):
        CheckpointStore("az://container/runs", "tuned", FINGERPRINT)
