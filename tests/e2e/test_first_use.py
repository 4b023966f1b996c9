"""The first command in an empty directory: `lookalike add FOLDER`, after which the folder can be searched."""

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.client.server import local_server
from tests.command import Command
from tests.e2e.world import Paint
from tests.stages.serving.web_servers import saying, web

pytestmark = [pytest.mark.timeout(600), pytest.mark.only_in_all]

NAMES = ("PACHD_ADDRESS", "PACH_CONTEXT", "LOOKALIKE_ROOT", "LOOKALIKE_SPECS")


@pytest.fixture
def newcomer(tmp_path: Path, paint: Paint, command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A command in a directory with nothing but a folder of pictures, and without any configuration."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PACH_CONFIG", str(tmp_path / "pachctl.json"))
    folder = command.directory / "photos"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.png").write_bytes(bytes(paint(number, 0)))
    return command


def test_one_command_makes_a_folder_searchable(newcomer: Command) -> None:
    root = newcomer.directory / ".lookalike"
    try:
        said = newcomer.says("add", "photos")
        assert "localpachd is running at grpc://127.0.0.1:" in said
        assert said.rstrip().splitlines()[-1].startswith("4 pictures added, searchable after ")
        assert (root / "port").read_text().strip() in said
        (newcomer.directory / "more.png").write_bytes((newcomer.directory / "photos" / "3.png").read_bytes())
        again = newcomer.says("add", "more.png")
        assert len(again.splitlines()) == 2
        assert again.rstrip().splitlines()[-1].startswith("1 picture added, searchable after ")
        assert "photos/2.png" in newcomer.says("query", "photos/2.png")
        said = newcomer.says("add", "-v", ".")
        assert "rejected:" not in said, "the library was put into itself"
        assert "skipped results: results of lookalike's" in said
        assert "put 5 files into images" in said
        newcomer.says("export", "own.parquet", "--vectors")
        newcomer.says("vectors", "add", "own.parquet", "--yes")
        newcomer.says("export", "library.tar")
        elsewhere = newcomer.directory.parent / "elsewhere"
        elsewhere.mkdir()
        moved = replace(newcomer, directory=elsewhere)
        said = moved.says("import", newcomer.directory / "library.tar")
        assert re.search(r"\n4 pictures imported, searchable after \d+ s\n", said)
        for pipeline in ("index", "vector-index"):
            assert re.search(rf"\n{pipeline}: \d+ files, all equal byte for byte\n", said)
        assert "photos/2.png" in moved.says("query", newcomer.directory / "photos" / "2.png")
    finally:
        local_server.down(root)
        local_server.down(newcomer.directory.parent / "elsewhere" / ".lookalike")


def test_a_list_of_urls_is_a_library_too(newcomer: Command, paint: Paint) -> None:
    held = {f"/{number}.png": bytes(paint(number, 0)) for number in range(3)}

    def behave(connection: socket.socket, path: str) -> None:
        found = saying(held[path]) if path in held else saying(b"", status="404 Not Found")
        found(connection, path)

    with web(behave) as server:
        urls = [f"{server.url(path)},trip{path},Ann,8" for path in (*held, "/gone.png")]
        (newcomer.directory / "urls.csv").write_text("\n".join(["url,path,Taken by,width", *urls, ""]))
        command = ("add", "urls.csv", "--networks", "127.0.0.0/8")
        try:
            done = newcomer.run(*command)
            assert done.returncode == 1 and f"left out {server.url('/gone.png')}: 127.0.0.1 answers" in done.stdout
            assert re.search(r"\n3 pictures added, 1 left out, searchable after \d+ s\n", done.stdout), done
            assert "1 column is left out, since lookalike has its own meaning for width" in " ".join(
                done.stdout.split()
            )
            assert "1 picture is not there: " in done.stderr and ".failed.tsv has the reason" in done.stderr
            held["/gone.png"] = bytes(paint(3, 0))
            said = newcomer.says(*command)
            assert re.search(r"1 picture added, 3 unchanged, searchable after \d+ s\n", said), said
            assert newcomer.says(*command).count("\n0 pictures added, 4 unchanged\n") == 1
            (newcomer.directory / "mine.png").write_bytes(held["/1.png"])
            assert "trip/1.png" in newcomer.says("query", "mine.png", "--where", "taken_by = 'Ann'")
        finally:
            local_server.down(newcomer.directory / ".lookalike")


def test_no_library_begins_for_a_list_that_is_none(newcomer: Command) -> None:
    (newcomer.directory / "urls.csv").write_text("a,b\n1,2\n")
    assert "urls.csv has no column url" in newcomer.fails("add", "urls.csv")
    assert "urls.csv is fetched" in newcomer.run("add", "urls.csv", "photos").stderr
    assert not (newcomer.directory / ".lookalike").exists()


def test_no_library_begins_where_no_file_is_found(newcomer: Command) -> None:
    (newcomer.directory / "empty").mkdir()
    assert newcomer.fails("add", "empty") == "no pictures found: nothing was put"
    assert not (newcomer.directory / ".lookalike").exists()
