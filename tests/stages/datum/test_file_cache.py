"""Files kept on this machine: which are used, which are dropped, and which go first."""

import errno
import os
from pathlib import Path

import pytest

from stages.datum.file_cache import FileCache


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "cache", 25)


def place(cache: FileCache, hash: str, content: bytes | None, size: int | None = 10) -> bytes:
    """The content of a placed file. content: that of the server, None if the file must be kept."""
    fetched: list[Path] = []

    def fetch(to: Path) -> None:
        assert content is not None
        to.write_bytes(content)
        fetched.append(to)

    with cache.scratch() as scratch:
        at = scratch / "deep" / hash
        assert cache.place(hash, size, at, fetch) == (not fetched)
        return at.read_bytes()


def test_a_file_is_fetched_once(cache: FileCache) -> None:
    assert place(cache, "aa1", b"0123456789") == place(cache, "aa1", None) == b"0123456789"
    assert cache.kept("aa1", 10) and not cache.kept("aa1", 9)


def test_a_file_of_unknown_size_is_kept_as_it_is(cache: FileCache) -> None:
    assert place(cache, "aa1", b"some", None) == place(cache, "aa1", None, None) == b"some"
    assert place(cache, "aa1", b"0123456789") == b"0123456789"  # the other one was cut off


def test_a_file_that_could_not_be_fetched_is_not_kept(cache: FileCache) -> None:
    def broken(to: Path) -> None:
        to.write_bytes(b"01234")
        raise ValueError

    with cache.scratch() as scratch, pytest.raises(ValueError):
        cache.place("aa1", None, scratch / "file", broken)
    assert place(cache, "aa1", b"0123456789", None) == b"0123456789"


def test_the_files_that_were_not_renewed_go_first(cache: FileCache, tmp_path: Path) -> None:
    for number in range(4):
        place(cache, f"aa{number}", b"0123456789")
        os.utime(tmp_path / "cache" / "files" / "aa" / f"aa{number}", (number, number))
    cache.renew(["aa1", "bb0", "aa0"])
    cache.trim()
    assert [cache.kept(f"aa{number}", 10) for number in range(4)] == [True, True, False, False]


def test_dropped_files_are_gone(cache: FileCache) -> None:
    place(cache, "aa1", b"0123456789")
    place(cache, "aa2", b"0123456789")
    cache.drop(["aa1", "bb0"])
    assert not cache.kept("aa1", 10) and cache.kept("aa2", 10)


def test_a_full_disk_is_told_with_the_place_of_the_cache(cache: FileCache, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught, cache.scratch():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(tmp_path / "cache")
    with pytest.raises(OSError, match="No such file") as other, cache.scratch() as scratch:
        (scratch / "none").read_bytes()
    assert other.value.filename.endswith("none")
