"""`lookalike attributes`: tables put with what they need, refused as a whole, listed, taken back and removed."""

import json
from pathlib import Path

import pytest

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications.pipeline_specs import repos_read
from stages.record.sources import Source
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import copying_spec, deploy_specs
from tests.stages.image_tables import image_table

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone, pytest.mark.usefixtures("own_cache")]

PATHS = ("a/1.jpg", "a/2.jpg", "b/2.jpg")

BOTH = [
    {"pfs": {"name": "in", "repo": "images", "glob": "/"}},
    {"pfs": {"name": "more", "repo": "annotations", "glob": "/"}},
]


@pytest.fixture
def library(as_user: Connection, command: Command, wait_for_jobs: WaitForJobs) -> Connection:
    """An index of three pictures, and pipelines that copy in place of ours."""
    specs = command.directory / "specs"
    for name, repo in (("index", "images"), ("annotations/annotations", "attributes")):
        path = specs / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(copying_spec(path.stem, repo)))
    overlay = {"pipelines": {"index": {"input": {"pfs": None, "cross": BOTH}}}}
    (specs / "overlays").mkdir()
    (specs / "overlays" / "annotations.json").write_text(json.dumps(overlay))
    deploy_specs(as_user, copying_spec("index", "images"))
    ids = [f"{number:064x}" for number in range(len(PATHS))]
    table = command.directory / "images.parquet"
    image_table(ids, 4, [(Source(path, id),) for path, id in zip(PATHS, ids, strict=True)]).write(table)
    wait_for_jobs(Repository(as_user, "images").write([PutFile("/0/images.parquet", table)]))
    return as_user


def put(command: Command, name: str, content: str) -> Path:
    path = command.directory / name
    path.write_text(content)
    return path


def index_reads(connection: Connection) -> set[str]:
    return {*repos_read(ProjectJobs(connection).pipelines()["index"].details.input)}


def files(connection: Connection) -> list[str]:
    return sorted(path for path, _ in Repository(connection, "attributes").read_all("/**"))


def test_a_table_is_put_with_the_pipeline_that_deals_it_and_taken_back(library: Connection, command: Command) -> None:
    put(command, "photos.csv", "path;Owner\na/1.jpg;me\n1.jpg;you\nnone.jpg;me\n")
    refused = command.run("attributes", "add", "photos.csv", "--yes")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-3:] == [
        "photos.csv, line 3: it states a/1.jpg again, after line 2: leave one row for each picture",
        "photos.csv, line 4: no picture of the library is called none.jpg",
        "lookalike: nothing was put, for 2 problems: correct them",
    ]
    assert "annotations" not in ProjectJobs(library).pipelines()
    put(command, "photos.csv", "path;Owner\na/1.jpg;me\nnone.jpg;me\n")
    assert command.run("attributes", "add", "photos.csv", "--yes").stderr.endswith(
        "1 problem: add these pictures first, or put the rows all the same with --keep-unknown\n"
    )
    said = command.says("attributes", "add", "photos.csv", "--yes", "--keep-unknown")
    assert "photos: 2 files get owner (text)\n" in said
    assert "1 row of pictures that the library lacks: they count when these come\n" in said
    assert "annotations will follow every change, so each later `lookalike add` will take " in said
    assert "pipeline annotations: created\npipeline index: updated\n" in said
    assert index_reads(library) == {"images", "annotations"}
    assert files(library) == ["/schema.json", "/tables/photos.parquet"]
    assert "these tables are there already\n" in command.says("attributes", "add", "photos.csv", "--keep-unknown")
    assert "pipeline index: updated\n" in command.says("deploy")
    assert index_reads(library) == {"images", "annotations"}

    put(command, "more.jsonl", '{"path": "b/2.jpg", "stars": 3}\n')
    assert "more: 1 file gets stars (integer)\n" in command.says("attributes", "add", "more.jsonl")
    assert json.loads(command.run("attributes", "list", "--json").stdout) == {
        "tables": {
            "more": {"files": 1, "attributes": ["stars"]},
            "photos": {"files": 2, "attributes": ["owner"]},
        },
        "attributes": {"owner": "text", "stars": "integer"},
        "deployed": True,
    }
    assert "takes back: a change of 2 files of attributes on " in command.says("undo", "--yes")
    assert files(library) == ["/schema.json", "/tables/photos.parquet"]
    assert json.loads(Repository(library, "attributes").read("/schema.json"))["columns"] == {"owner": {"type": "text"}}

    assert command.fails("attributes", "remove", "photo") == "no table is called photo: nothing was removed (photos)"
    command.says("attributes", "remove", "photos")
    assert files(library) == ["/schema.json"]
    assert "\npipeline index: updated\npipeline annotations: deleted\n" in command.says("attributes", "off")
    assert index_reads(library) == {"images"}


def test_a_command_line_without_a_table_or_with_an_unknown_type_is_refused(
    library: Connection, command: Command
) -> None:
    assert "name a table, or a folder with --sidecars" in command.run("attributes", "add").stderr
    put(command, "photos.csv", "path,x\na/1.jpg,1\n")
    done = command.run("attributes", "add", "photos.csv", "--type", "x=word")
    assert (done.returncode, "a type is text, integer" in done.stderr) == (2, True)
    assert "write COLUMN=VALUE" in command.run("attributes", "add", "photos.csv", "--rename", "x").stderr
    (command.directory / "empty").mkdir()
    assert "empty has no .json, .txt or .xmp file beside" in command.fails("attributes", "add", "--sidecars", "empty")
