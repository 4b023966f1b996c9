"""Secrets of pipelines, checked and used."""

from pathlib import Path

import pytest

from localpachd.errors import PachError
from localpachd.pps.specs import secret_checks
from localpachd.worker.secret_store import Secret, SecretStore
from tests.localpachd.pps.engine import Engine

WORD = b"open sesame"


@pytest.fixture
def kept(tmp_path: Path) -> SecretStore:
    store = SecretStore(tmp_path / "secrets")
    store.create(Secret("s", "Opaque", 0, {"word": WORD}))
    return store


def check(kept: SecretStore, *uses: dict[str, str]) -> None:
    secret_checks.check({"transform": {"secrets": list(uses)}}, kept)


def test_a_request_without_secrets_is_accepted(kept: SecretStore) -> None:
    secret_checks.check({}, kept)
    secret_checks.check({"transform": {}}, kept)
    check(kept, {"name": "s"})
    check(
        kept, {"name": "s", "key": "word", "env_var": "WORD", "mount_path": "/a/b"}, {"name": "s", "mount_path": "/a/c"}
    )


@pytest.mark.parametrize(
    ("uses", "text"),
    [
        ([{"name": "t", "env_var": "E"}], "secret t has env_var set but is missing key"),
        ([{"name": "t"}], "missing Kubernetes secret t"),
        ([{"name": "../s"}], "missing Kubernetes secret ../s"),
        ([{"name": "s", "env_var": "E", "key": "k"}], "Kubernetes secret s missing key k"),
        (
            [{"name": "s", "env_var": "MY-E", "key": "word"}],
            'secret s has env_var "MY-E": use letters, digits and underscores only',
        ),
        ([{"name": "s", "mount_path": "a"}], 'a secret has mount_path "a": it must be an absolute path outside /pfs'),
        ([{"name": "s", "mount_path": "/"}], 'a secret has mount_path "/": it must be an absolute path outside /pfs'),
        ([{"name": "s", "mount_path": "/a/../b"}], 'a secret has mount_path "/a/../b": it must be an absolute path'),
        ([{"name": "s", "mount_path": "//pfs/x"}], 'a secret has mount_path "//pfs/x": it must be an absolute path'),
        (
            [{"name": "s", "mount_path": "/a"}, {"name": "s", "mount_path": "/a/b"}],
            'a secret has mount_path "/a/b", where another secret is mounted',
        ),
        (
            [{"name": "s", "mount_path": "/a/b"}, {"name": "s", "mount_path": "/a"}],
            'a secret has mount_path "/a", where another secret is mounted',
        ),
    ],
)
def test_invalid_uses_are_refused(kept: SecretStore, uses: list[dict[str, str]], text: str) -> None:
    with pytest.raises(PachError) as refused:
        check(kept, *uses)
    assert str(refused.value).startswith(text)


def test_a_value_is_neither_in_a_datums_record_nor_in_the_log(engine: Engine) -> None:
    engine.repo("texts")
    engine.secrets.create(Secret("s", "Opaque", 0, {"word": WORD}))
    transform = {"secrets": [{"name": "s", "key": "word", "env_var": "WORD"}]}
    engine.create(
        "p", {"pfs": {"repo": "texts", "glob": "/*"}}, 'echo ${#WORD} > "$PFS/out/length"', transform=transform
    )
    engine.put("texts", {"/a": "1"})
    job = engine.settle("p")
    assert engine.files("p") == {"/length": f"{len(WORD)}\n"}
    meta = engine.files("p", kind="meta")
    assert any(path.endswith("/.env") for path in meta)
    assert not any(WORD.decode() in text for text in meta.values())
    assert WORD.decode() not in str(job)


def test_a_deleted_secret_fails_the_datum_until_it_is_back(engine: Engine) -> None:
    engine.repo("texts")
    secret = Secret("s", "Opaque", 0, {"word": WORD})
    engine.secrets.create(secret)
    transform = {"secrets": [{"name": "s", "key": "word", "env_var": "WORD"}]}
    engine.create("p", {"pfs": {"repo": "texts", "glob": "/*"}}, 'cp "$texts" "$PFS/out/"', transform=transform)
    engine.secrets.delete("s")
    engine.put("texts", {"/a": "1"})
    job = engine.settle("p")
    assert job.state == "JOB_FAILURE"
    (datum,) = engine.datums(job.job).values()
    assert datum.reason == 'transform.secrets: secrets "s" not found: create it again'
    engine.secrets.create(secret)
    engine.put("texts", {"/b": "2"})
    assert engine.settle("p").state == "JOB_SUCCESS"
