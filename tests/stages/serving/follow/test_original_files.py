"""The files of pictures in blocks: found by the lists of these, whatever masks hide by now."""

import hashlib
from pathlib import Path

import pytest

from stages.datum.file_cache import FileCache
from stages.files import blocks
from stages.files.blocks import ByteRange, RecordBlock
from stages.record.sources import Source
from stages.record.url_records import UrlRecord
from stages.serving.follow.original_files import OriginalFiles, SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from tests.pipelines.library.picture_contents import earlier_blocks
from tests.servers import Localpachd, Unique
from tests.stages.serving.web_servers import saying, web


def test_pictures_are_found_in_blocks_of_this_and_earlier_versions(
    localpachd: Localpachd, unique: Unique, tmp_path: Path
) -> None:
    client, project = localpachd.client(), unique("blocks")
    client.create_project(project)
    client.create_repo("images", project_name=project)
    held = {f"photos/{number:02}.jpg": f"{number}".encode() for number in range(60)}
    late = {f"photos/{number:02}b.jpg": f"late {number}".encode() for number in range(60)}
    early = {f"early/{number:02}.jpg": f"early {number}".encode() for number in range(20)}
    files = earlier_blocks(early, "0", "1") | {"photos%2F07.jpg": b"replaced"}
    for pictures in (held, late):
        for number, content in enumerate(pictures.values()):
            (tmp_path / f"{number}").write_bytes(content)
        spans = {name: ByteRange(tmp_path / f"{number}") for number, name in enumerate(pictures)}
        for block in map(blocks.block, blocks.cut(spans, 25)):
            files[block.name] = b"".join(block.pieces())
    with client.commit("images", "master", project_name=project) as commit:
        for path, content in files.items():
            client.put_file_bytes(commit, f"/{path}", content)
    server = PachydermClient(PachydermAddress(localpachd.address, project))
    originals = OriginalFiles(server, commit.id, FileCache(tmp_path / "cache"))
    for name, content in [*held.items(), *late.items(), *early.items(), ("photos/07.jpg", b"replaced")]:
        source = Source(name, hashlib.sha256(content).hexdigest())
        found = originals.open(source)
        assert (b"".join(found.chunks), found.name) == (content, name.rpartition("/")[2])


def test_pictures_that_stay_at_their_urls_are_fetched_and_verified(
    localpachd: Localpachd, unique: Unique, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCH_FROM", "127.0.0.0/8")
    client, project = localpachd.client(), unique("records")
    client.create_project(project)
    client.create_repo("images", project_name=project)
    digest = hashlib.sha256(b"there").hexdigest()
    with web(saying(b"there")) as shop:
        right = UrlRecord("shop/a.jpg", shop.url("/a.jpg"), "", digest, 5)
        wrong = UrlRecord("shop/b.jpg", shop.url("/b.jpg"), "", "0" * 64, 5)
        block = RecordBlock((right, wrong))
        with client.commit("images", "master", project_name=project) as commit:
            client.put_file_bytes(commit, f"/{block.name}", block.listed)
        server = PachydermClient(PachydermAddress(localpachd.address, project))
        originals = OriginalFiles(server, commit.id, FileCache(tmp_path / "cache"))
        found = originals.open(Source("shop/a.jpg", digest))
        assert (b"".join(found.chunks), found.name) == (b"there", "a.jpg")
        with pytest.raises(SourceGoneError, match="has another file than the one that was added"):
            originals.open(Source("shop/b.jpg", "0" * 64))
        with pytest.raises(SourceGoneError, match="cannot be found"):
            originals.open(Source("shop/a.jpg", "1" * 64))
    with pytest.raises(SourceGoneError, match=r"shop/a\.jpg cannot be fetched from .* cannot be reached"):
        originals.open(Source("shop/a.jpg", digest))
