"""The files of pictures in blocks: found by the lists of these, whatever masks hide by now."""

import hashlib
from pathlib import Path

from pipelines.library import blocks
from pipelines.library.blocks import ByteRange
from stages.datum.file_cache import FileCache
from stages.record.sources import Source
from stages.serving.follow.original_files import OriginalFiles
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from tests.pipelines.library.picture_contents import earlier_blocks
from tests.servers import Localpachd, Unique


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
