"""The service of file sets through pachyderm-sdk: created, read through filters, composed, sharded, renewed."""

import hashlib
import random
import urllib.error
import urllib.request

import betterproto
import grpc
import pytest
from pachyderm_sdk import Client
from pachyderm_sdk.api import cdr, pfs, storage

from tests.parity.sdk.places import Place, Refusal

pytestmark = pytest.mark.since("2.10")


def _append(path: str, data: bytes) -> storage.CreateFilesetRequest:
    return storage.CreateFilesetRequest(append_file=storage.AppendFile(path=path, data=data))


def _delete(path: str) -> storage.CreateFilesetRequest:
    return storage.CreateFilesetRequest(delete_file=storage.DeleteFile(path=path))


def _copy(made: str, src: str, dst: str = "") -> storage.CreateFilesetRequest:
    return storage.CreateFilesetRequest(copy_file=storage.CopyFile(fileset_id=made, src=src, dst=dst))


def _create(client: Client, *changes: storage.CreateFilesetRequest) -> str:
    return str(client.storage.create_fileset(iter(changes)).fileset_id)


def _numbered(client: Client, count: int) -> str:
    return _create(client, *(_append(f"/{number}", b"x") for number in range(count)))


def _range(lower: str, upper: str) -> storage.FileFilter:
    return storage.FileFilter(path_range=storage.PathRange(lower=lower, upper=upper))


def _regex(pattern: str) -> storage.FileFilter:
    return storage.FileFilter(path_regex=pattern)


def _read(client: Client, made: str, *filters: storage.FileFilter) -> dict[str, bytes]:
    """The files by path, in the order in which they came; each file's messages follow one another."""
    found: dict[str, bytes] = {}
    last = ""
    for each in client.storage.read_fileset(fileset_id=made, filters=list(filters)):
        assert each.path == last or each.path not in found
        last = each.path
        found[each.path] = found.get(each.path, b"") + (each.data or b"")
    return found


def test_a_stream_of_changes_becomes_files(client: Client) -> None:
    made = _create(
        client,
        _append("/d/b", b"1"), _append("/a", b"2"), _append("/d/b", b"3"), _append("/gone", b"4"), _append("c", b"old"),
        _delete("/gone"), _delete("/never"), _delete("/c"), _append("/c", b"new"),
    )  # fmt: skip
    read = _read(client, made)
    assert read == {"/a": b"2", "/c": b"new", "/d/b": b"13"}
    assert list(read) == ["/a", "/c", "/d/b"]
    assert _read(client, _create(client)) == {}


def test_files_and_directories_are_copied(client: Client) -> None:
    source = _create(client, _append("/d/one", b"1"), _append("/d/e/two", b"2"), _append("/dd", b"3"))
    assert _read(client, _create(client, _copy(source, "/d"))) == {"/d/e/two": b"2", "/d/one": b"1"}
    assert _read(client, _create(client, _copy(source, "/d", "/f/g"))) == {"/f/g/e/two": b"2", "/f/g/one": b"1"}
    assert _read(client, _create(client, _copy(source, "/dd", "/x"), _append("/x", b"+"))) == {"/x": b"3+"}
    assert _read(client, _create(client, _append("/x", b"old"), _copy(source, "/dd", "/x"))) == {"/x": b"3"}
    assert _read(client, _create(client, _copy(source, "/ghost"))) == {}
    assert _read(client, _create(client, _copy(source, "/"))) == _read(client, source)


def test_a_large_file_comes_in_pieces(client: Client) -> None:
    pieces = [random.Random(number).randbytes(6 << 20) for number in range(2)]
    made = _create(client, *(_append("/large", piece) for piece in pieces), _append("/small", b"1"))
    assert _read(client, made) == {"/large": b"".join(pieces), "/small": b"1"}
    paths = [each.path for each in client.storage.read_fileset(fileset_id=made)]
    assert paths.count("/large") > 1
    assert paths.count("/small") == 1


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((_range("/1", "/3"),), ["/1", "/2"]),
        ((_range("/3", ""),), ["/3", "/4"]),
        ((_range("", "/1"),), ["/0"]),
        ((_range("/1", "/4"), _range("/2", "/5")), ["/2", "/3"]),
        ((_range("/0", "/2"), _range("/3", "/5")), []),
        ((_regex("[13]"),), ["/1", "/3"]),
        ((_regex("^1"),), []),
        ((_regex("[123]"), _regex("[^2]$"), _range("/2", "")), ["/3"]),
        ((_regex("/"),), ["/0", "/1", "/2", "/3", "/4"]),
    ],
)
def test_a_file_must_pass_every_filter(
    client: Client, filters: tuple[storage.FileFilter, ...], expected: list[str]
) -> None:
    assert list(_read(client, _numbered(client, 5), *filters)) == expected


@pytest.mark.parametrize("most", [-1, 0, 1, 2, 3, 7])
def test_shards_hold_every_file_once(client: Client, most: int) -> None:
    made = _numbered(client, 7)
    shards = client.storage.shard_fileset(fileset_id=made, num_files=most).shards
    parts = [_read(client, made, storage.FileFilter(path_range=shard)) for shard in shards]
    assert [path for part in parts for path in part] == list(_read(client, made))
    assert {len(part) for part in parts[:-1]} <= {most}
    assert len(shards) == (-(-7 // most) if most > 0 else 1)
    assert (shards[0].lower, shards[-1].upper) == ("", "")


def test_composing_puts_one_on_top_of_another(client: Client) -> None:
    below = _create(client, _append("/a", b"1"), _append("/b", b"2"), _append("/c", b"3"))
    above = _create(client, _append("/a", b"+"), _delete("/b"), _delete("/c"), _append("/c", b"new"))
    made = client.storage.compose_fileset(fileset_ids=[below, above], ttl_seconds=60).fileset_id
    assert _read(client, made) == {"/a": b"1+", "/c": b"new"}


def test_its_file_sets_are_those_of_commits(client: Client, place: Place) -> None:
    master = place.branch()
    place.put(master, a="1", b="2")
    got = client.pfs.get_file_set(commit=pfs.Commit(repo=master.repo, branch=master)).file_set_id
    assert _read(client, got) == {"/a": b"1", "/b": b"2"}
    made = _create(client, _copy(got, "/a", "/c"), _delete("/b"))
    with client.pfs.commit(branch=master) as commit:
        client.pfs.add_file_set(commit=commit, file_set_id=made)
    commit.wait()
    assert [place.read(pfs.File(commit=commit, path=path)) for path in ("/a", "/c")] == ["1", "1"]
    assert not client.pfs.path_exists(file=pfs.File(commit=commit, path="/b"))


def test_a_lifetime_is_renewed_within_limits(client: Client, refusal: Refusal) -> None:
    made = _numbered(client, 1)
    client.storage.renew_fileset(fileset_id=made, ttl_seconds=1800)
    for seconds, text in ((0, "must be at least one second"), (1801, "exceeds max ttl")):
        code, said = refusal(client.storage.renew_fileset, fileset_id=made, ttl_seconds=seconds)
        assert code is grpc.StatusCode.UNKNOWN
        assert text in said


def test_invalid_requests_are_refused(client: Client, refusal: Refusal) -> None:
    calls = client.storage
    for call, fields in (
        (calls.read_fileset, {"fileset_id": "ghost"}),
        (calls.renew_fileset, {"fileset_id": "ghost", "ttl_seconds": 60}),
        (calls.compose_fileset, {"fileset_ids": ["ghost"], "ttl_seconds": 60}),
        (calls.shard_fileset, {"fileset_id": "ghost"}),
    ):
        code, text = refusal(call, **fields)
        assert code is grpc.StatusCode.UNKNOWN
        assert "too short" in text
    code, text = refusal(calls.create_fileset, iter([_copy("ghost", "/a")]))
    assert code is grpc.StatusCode.UNKNOWN
    assert "too short" in text
    assert refusal(calls.create_fileset, iter([_append("/a*", b"1")])) == (
        grpc.StatusCode.UNKNOWN, "path (/a*) invalid: globbing character (*) not allowed in path",
    )  # fmt: skip
    refusal(calls.read_fileset, fileset_id=_numbered(client, 1), filters=[_regex("(")])


def _resolved(ref: cdr.Ref) -> bytes:
    """The bytes of a reference, checked; the client's own resolver needs packages that are not here."""
    kind, body = betterproto.which_one_of(ref, "body")
    if kind == "concat":
        return b"".join(map(_resolved, body.refs))
    assert kind == "content_hash" and body.algo == cdr.HashAlgo.BLAKE2b_256
    with urllib.request.urlopen(body.inner.http.url, timeout=60) as answer:
        data: bytes = answer.read()
    assert hashlib.blake2b(data, digest_size=32).digest() == body.hash
    return data


@pytest.mark.only_localpachd("Pachyderm has URLs in a bucket alone, whose chunks may be compressed")
def test_references_lead_to_the_data_for_whoever_has_them(client: Client) -> None:
    big = bytes(range(256)) * (36 << 10)  # two chunks
    made = _create(client, _append("/big", big[: 4 << 20]), _append("/big", big[4 << 20 :]), _append("/empty", b""))
    found = {each.path: each.ref for each in client.storage.read_fileset_cdr(fileset_id=made)}
    assert {path: _resolved(ref) for path, ref in found.items()} == {"/big": big, "/empty": b""}
    assert [each.path for each in client.storage.read_fileset_cdr(fileset_id=made, filters=[_regex("big")])] == ["/big"]
    url = found["/big"].concat.refs[0].content_hash.inner.http.url
    for wrong in (url[:-1], url.replace("until=", "until=9"), url.partition("?")[0]):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(wrong, timeout=60)


@pytest.mark.only_localpachd("Pachyderm sends nothing for an empty file, and the data whether wanted or not")
def test_an_empty_file_and_one_without_its_data_are_one_message(client: Client) -> None:
    made = _create(client, _append("/empty", b""), _append("/full", b"1" * (3 << 20)))
    whole = client.storage.read_fileset(fileset_id=made, filters=[_regex("empty")])
    assert [(each.path, each.data) for each in whole] == [("/empty", b"")]
    names = client.storage.read_fileset(fileset_id=made, empty_files=True)
    assert [(each.path, each.data) for each in names] == [("/empty", None), ("/full", None)]


@pytest.mark.only_localpachd("Pachyderm ignores it")
def test_a_request_without_a_change_is_refused(client: Client, refusal: Refusal) -> None:
    code, text = refusal(client.storage.create_fileset, iter([storage.CreateFilesetRequest()]))
    assert (code, text) == (grpc.StatusCode.UNKNOWN, "unrecognized message type")
