"""Secrets: the store that only its owner can read, and the secrets that processes see."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from localpachd.errors import AlreadyExists, NotFound, PachError
from localpachd.worker.secret_store import LARGEST, Secret, SecretStore
from localpachd.worker.tasks import SecretUse
from tests.localpachd.worker.bench import Bench

WORD = "open sesame"


def _secret(name: str = "s", **data: bytes) -> Secret:
    return Secret(name, "Opaque", 7, data or {"word": WORD.encode()})


@pytest.fixture
def store(tmp_path: Path) -> SecretStore:
    return SecretStore(tmp_path / "secrets")


def test_only_the_owner_can_read_them(store: SecretStore, tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        store.create(_secret())
    finally:
        os.umask(mask)
    (file,) = (tmp_path / "secrets").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_they_are_there_after_a_restart(store: SecretStore, tmp_path: Path) -> None:
    for name in ("b", "a.c", "a-d"):
        store.create(_secret(name, key=bytes(range(256))))
    again = SecretStore(tmp_path / "secrets")
    assert [each.name for each in again.every()] == ["a-d", "a.c", "b"]
    assert again.get("b") == _secret("b", key=bytes(range(256)))
    again.delete("b")
    again.delete_all()
    assert again.every() == []


def test_of_several_at_once_one_is_kept(store: SecretStore) -> None:
    outcomes: list[str] = []

    def create(number: int) -> None:
        try:
            store.create(_secret(number=str(number).encode()))
            outcomes.append(str(number))
        except AlreadyExists:
            outcomes.append("")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = (outcome for outcome in outcomes if outcome)
    assert store.get("s").data == {"number": winner.encode()}


@pytest.mark.parametrize("name", ["", ".", "..", "../s", "a/b", "A", "a_b", "-a", "a-", "a..b", "ä", "a" * 254])
def test_names_that_cannot_be(store: SecretStore, tmp_path: Path, name: str) -> None:
    with pytest.raises(PachError, match="metadata.name"):
        store.create(_secret(name))
    for call in (store.get, store.delete):
        with pytest.raises(NotFound):
            call(name)
    assert list((tmp_path / "secrets").iterdir()) == []


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "a b", "a" * 254])
def test_keys_that_cannot_be(store: SecretStore, key: str) -> None:
    with pytest.raises(PachError, match="a valid config key"):
        store.create(_secret("s", **{key: b""}))


def test_a_secret_may_have_a_mebibyte(store: SecretStore) -> None:
    store.create(_secret("full", key=bytes(LARGEST)))
    with pytest.raises(PachError, match="must have at most 1048576 bytes"):
        store.create(_secret("over", key=bytes(LARGEST), more=b"x"))


def test_nobody_prints_a_value_by_accident() -> None:
    assert WORD not in repr(_secret())


def test_variables_are_seen_and_kept_nowhere(bench: Bench) -> None:
    bench.secrets.create(_secret())
    use = SecretUse("s", key="word", env_var="WORD")
    task = bench.sh('printf "%s" "$WORD" > "$PFS/out/said"; cat "$PFS/.env"', secrets=(use,), env={"WORD": "other"})
    result = bench.one(task)
    assert bench.output(result) == {"/said": WORD.encode()}
    assert not any(WORD in line.message for line in bench.lines)


def test_a_datum_s_own_variables_come_first(bench: Bench) -> None:
    bench.secrets.create(_secret())
    use = SecretUse("s", key="word", env_var="in")
    result = bench.one(bench.sh('cat "$in" > "$PFS/out/f"', secrets=(use,)), bench.input("in", "/f", {"/f": b"hello"}))
    assert bench.output(result) == {"/f": b"hello"}


@pytest.mark.parametrize(
    "target",
    [
        "/mnt",
        "/var/made-for-a-test/deep/er",
        "/made-for-a-test",
        "/var/run/made-for-a-test",
        "/var/tmp/made-for-a-test",
    ],
)
def test_files_are_seen_wherever_they_should_be(mounted: Bench, target: str) -> None:
    there = Path(target).exists()
    mounted.secrets.create(_secret("s", word=WORD.encode(), raw=b"\0\xff"))
    task = mounted.sh(
        f"cat {target}/word > /pfs/out/word; ls -A {target} | sort > /pfs/out/names; cp {target}/raw /pfs/out/; "
        "ls /var/lib > /dev/null && ls /usr/bin/env && test -r /proc/self/status && echo fine",
        secrets=(SecretUse("s", mount_path=target),),
    )
    result = mounted.one(task)
    assert mounted.output(result) == {"/names": b"raw\nword\n", "/raw": b"\0\xff", "/word": WORD.encode()}, result
    assert mounted.said() == ["/usr/bin/env", "fine"]
    assert Path(target).exists() is there


def test_a_directory_that_is_remade_keeps_its_rights(mounted_at_home: Bench) -> None:
    mounted_at_home.secrets.create(_secret())
    script = "stat -c '%a %u' /var/tmp; : > /var/tmp/of-a-test; test -w /var/tmp && echo writable"
    mounted_at_home.one(mounted_at_home.sh(script, secrets=(SecretUse("s", mount_path="/var/tmp/made-for-a-test"),)))
    found = Path("/var/tmp").stat()
    assert mounted_at_home.said() == [f"{stat.S_IMODE(found.st_mode):o} {found.st_uid}", "writable"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run commands as somebody else")
def test_files_belong_to_the_user(mounted: Bench) -> None:
    mounted.secrets.create(_secret())
    use = SecretUse("s", key="word", env_var="WORD", mount_path="/mnt/made-for-a-test")
    script = 'cat /mnt/made-for-a-test/word; echo; stat -c "%U %a" /mnt/made-for-a-test /mnt/made-for-a-test/word'
    mounted.one(mounted.sh(script, user="nobody", secrets=(use,)))
    assert mounted.said() == [WORD, "nobody 700", "nobody 400"]


def test_where_nothing_can_be_mounted_that_is_the_reason(tmp_path: Path, at_home: Bench) -> None:
    if at_home.mounts:
        pytest.skip("here it can")
    at_home.secrets.create(_secret())
    result = at_home.one(at_home.sh("true", secrets=(SecretUse("s", mount_path="/mnt/s"),)))
    assert (result.state, result.reason) == (
        "FAILED",
        "transform.secrets: nothing can be mounted on this machine: use env_var in place of mount_path",
    )


def test_a_missing_secret_or_key_is_the_reason(bench: Bench) -> None:
    bench.secrets.create(_secret("zero", key=b"a\0b"))

    def reason(**use: str) -> str:
        result = bench.one(bench.sh("true", secrets=(SecretUse(**use),)))
        assert result.state == "FAILED"
        return result.reason

    assert reason(name="ghost", key="k", env_var="E") == 'transform.secrets: secrets "ghost" not found: create it again'
    assert reason(name="zero", key="other", env_var="E") == "transform.secrets: secret zero no longer has the key other"
    assert "holds a zero byte" in reason(name="zero", key="key", env_var="E")


def test_a_file_is_no_place_for_a_directory(mounted_at_home: Bench) -> None:
    mounted_at_home.secrets.create(_secret())
    for target in ("/etc/passwd", "/etc/passwd/s"):
        result = mounted_at_home.one(mounted_at_home.sh("true", secrets=(SecretUse("s", mount_path=target),)))
        assert result.state == "FAILED"
        assert "/etc/passwd is a file" in result.reason
