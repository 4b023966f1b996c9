"""Files outside the server: directories, an object store with the S3 calls needed here, and the web."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.errors import PachError
from localpachd.storage import object_urls
from localpachd.storage.url_reach import UrlReach, network
from tests import buckets
from tests.buckets import Bucket

FILES = {"/a/b.txt": b"one two", "/empty": b"", "/odd #%?*~ name": b"x" * 100}


@pytest.fixture
def address() -> Iterator[str]:
    """The host:port of the object store that these tests use as S3."""
    with buckets.serving() as found:
        yield found


NEAR = UrlReach((Path(tempfile.gettempdir()),), (network("127.0.0.0/8"),))
"""The directories and web sites of tests."""


def upload(url: str, files: dict[str, bytes], reach: UrlReach = NEAR) -> int:
    return object_urls.upload(url, ((path, iter([data[:3], data[3:]])) for path, data in files.items()), reach)


def download(url: str, recursive: bool = False, reach: UrlReach = NEAR) -> dict[str, bytes]:
    return {name: b"".join(pieces) for name, pieces in object_urls.download(url, reach, recursive)}


@pytest.mark.parametrize("scheme", ["file", "local"])
def test_files_are_copied_to_a_directory(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}://{tmp_path}/out"
    assert upload(url, FILES) == 107
    assert {f"/{each.relative_to(tmp_path / 'out')}": each.read_bytes() for each in (tmp_path / "out").rglob("*")
            if each.is_file()} == FILES  # fmt: skip
    assert download(url, recursive=True) == FILES
    assert download(f"{url}/a/b.txt") == {"": b"one two"}


def test_copying_replaces_files_and_leaves_others(tmp_path: Path) -> None:
    upload(f"file://{tmp_path}", {"/a": b"old", "/b": b"kept"})
    upload(f"file://{tmp_path}", {"/a": b"new"})
    assert download(f"file://{tmp_path}", recursive=True) == {"/a": b"new", "/b": b"kept"}


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(PachError, match="/a: "):
        upload(f"file://{tmp_path}", {"/a": b"x"})
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_files_are_copied_to_a_bucket(address: str) -> None:
    assert upload("s3://bucket/some/dir", FILES) == 107
    assert Bucket.held == {f"/bucket/some/dir{path}": data for path, data in FILES.items()}
    assert download("s3://bucket/some/dir", recursive=True) == FILES
    assert download("s3://bucket/some/dir/a/b.txt") == {"": b"one two"}
    assert download(f"minio://{address}/bucket/some/dir/a/b.txt") == {"": b"one two"}
    assert download(f"s3://bucket/some/dir/empty?endpoint={address}&disableSSL=true") == {"": b""}


def test_a_prefix_need_not_be_a_directory(address: str) -> None:
    upload("s3://bucket", {"/run-1/a": b"1", "/run-2/a": b"2", "/other": b"3"})
    assert download("s3://bucket/run-", recursive=True) == {"1/a": b"1", "2/a": b"2"}


def test_a_large_object_is_uploaded_in_parts(address: str) -> None:
    data = bytes(range(256)) * (5 << 12) * 4
    pieces = (data[at : at + 100_000] for at in range(0, len(data), 100_000))
    assert object_urls.upload("s3://bucket", [("/large", pieces)], UrlReach())
    assert Bucket.held["/bucket/large"] == data


def test_the_web_is_read(address: str) -> None:
    Bucket.held["/some/page"] = b"hello"
    assert download(f"http://{address}/some/page", recursive=True) == {"": b"hello"}
    with pytest.raises(PachError, match='error retrieving content from "http://.*/nothing": 404 Not Found'):
        download(f"http://{address}/nothing")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://host/x", "unrecognized object store: ftp"),
        ("http://host/x", "unrecognized object store: http"),
        ("/just/a/path", "unrecognized object store: "),
        ("s3:///x", "has no bucket"),
        ("file://host/x", "is not the URL of a directory"),
        ("file:beside", "is not the URL of a directory"),
        ("local://", "is not the URL of a directory"),
        ("s3://bucket/x?region=x@other.host/%23", "x@other.host/# is not the name of a region or an account"),
        ("wasb://box@acc%23ount/x", "acc%23ount is not the name of a region or an account"),
        ("s3://bucket/x?regoin=eu-west-1", "unknown parameters regoin"),
    ],
)
def test_targets_that_are_not_writable_are_refused_at_once(url: str, text: str) -> None:
    with pytest.raises(PachError, match=text):
        object_urls.check_target(url)


def test_a_missing_source_is_an_error(address: str, tmp_path: Path) -> None:
    for url in ("s3://bucket/nothing", f"file://{tmp_path}/nothing"):
        with pytest.raises(PachError, match="nothing"):
            download(url)
