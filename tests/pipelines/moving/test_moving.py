"""Moving a library: exporting from one project of a server, importing into another."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.client.connection import Connection
from pipelines.client.deployment import deploy
from pipelines.client.history import History
from pipelines.client.jobs import Job, Jobs
from pipelines.client.repository import Edit, Put, Remove, Repository
from pipelines.errors import LookalikeError
from pipelines.moving import exporting, importing
from pipelines.moving.bundle import Bundle, Manifest
from pipelines.specifications import reading
from tests.amounts import examples
from tests.servers import Unique

WaitForJobs = Callable[..., list[Job]]

COPY = r"""
pfs="${LOCALPACHD_PFS:-/pfs}"
for file in "$images"; do tr a-z A-Z < "$file" > "$pfs/out/$(basename "$file")"; done
echo "$MOOD" > "$pfs/out/mood-$(basename "$images")"
"""


def shouting(connection: Connection, directory: Path, mood: str = "calm") -> None:
    """Deploys a pipeline that writes every picture in capitals, and its mood."""
    document = {
        "pipeline": {"name": "shout"},
        "input": {"pfs": {"name": "images", "repo": "images", "branch": "master", "glob": "/*"}},
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": COPY.splitlines(), "env": {"MOOD": mood}},
    }
    path = directory / "shout.json"
    path.write_text(json.dumps(document))
    deploy(connection, [reading.read(path)])


def put(connection: Connection, repo: str, **files: str | None) -> str:
    """Makes one commit: files by name; None removes one."""
    changes: list[Edit] = [
        Remove(f"/{name}") if content is None else Put(f"/{name}", content.encode()) for name, content in files.items()
    ]
    return Repository(connection, repo).write(changes)


def quiet(_: int) -> None:
    pass


@pytest.fixture
def other(connection: Connection, unique: Unique) -> Iterator[Connection]:
    """Another project, in place of another server."""
    project = unique("other")
    connection.client.create_project(project)
    there = replace(connection, project=project)
    yield there
    connection.client.delete_pipeline("shout", force=True, project_name=project)
    for repo in list(connection.client.list_repo()):
        if repo.repo.project.name == project:
            connection.client.delete_repo(repo.repo.name, force=True, project_name=project)
    connection.client.delete_project(project)


@pytest.fixture
def library(connection: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path) -> Connection:
    """A library with a history: pictures added, changed and removed, and a query."""
    shouting(connection, tmp_path)
    for repo in ("queries", "models"):
        connection.client.create_repo(repo, project_name=connection.project)
    put(connection, "images", a="one", b="two", c="")
    put(connection, "queries", q="two")
    connection.client.create_repo("labels", project_name=connection.project)
    put(connection, "labels", l="a,cat")
    put(connection, "images", b="three", a=None)
    wait_for_jobs(put(connection, "images", d="one"))
    return connection


def exported(connection: Connection, directory: Path) -> Manifest:
    return exporting.export(connection, Bundle(directory), ["shout"], quiet)


def test_every_commit_is_imported_in_its_order(library: Connection, other: Connection, tmp_path: Path) -> None:
    manifest = exported(library, tmp_path / "bundle")
    assert [each.repo for each in manifest.commits] == ["images", "queries", "labels", "images", "images"]
    assert [[(change.path, bool(change.sha256)) for change in each.changes] for each in manifest.commits] == [
        [("/a", True), ("/b", True), ("/c", True)],
        [("/q", True)],
        [("/l", True)],
        [("/a", False), ("/b", True)],
        [("/d", True)],
    ]
    made = importing.replay(other, Bundle(tmp_path / "bundle"), quiet)
    history = History(other)
    there = {each.id: each for repo in ("images", "queries", "labels") for each in history.commits(repo)}
    assert [new for _, new in made] == [each.id for each in sorted(there.values(), key=lambda each: each.started)]
    for old, new in made:
        assert there[new].description == f"(was {old.id} of {old.started})"
        before, now = (Repository(*at).hashes("/") for at in ((library, old.repo, old.id), (other, old.repo, new)))
        assert before == now
    with (tmp_path / "bundle" / "ids.tsv").open() as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    assert [(row["there"], row["here"]) for row in table] == [(old.id, new) for old, new in made]


def test_an_interrupted_import_can_be_continued(library: Connection, other: Connection, tmp_path: Path) -> None:
    bundle = Bundle(tmp_path / "bundle")
    exported(library, bundle.directory)
    seen: list[int] = []

    def twice(more: int) -> None:
        seen.append(more)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importing.replay(other, bundle, twice)
    first = History(other).commits("images")
    made = importing.replay(other, bundle, quiet)
    assert [each.id for each in History(other).commits("images")][:1] == [each.id for each in first]
    assert importing.replay(other, bundle, quiet) == made
    put(library, "images", e="five")
    assert len(exported(library, bundle.directory).commits) == 6
    assert importing.replay(other, bundle, quiet)[:5] == made


def test_outputs_are_compared_byte_by_byte(library: Connection, other: Connection, tmp_path: Path) -> None:
    manifest = exported(library, tmp_path / "bundle")
    made = importing.replay(other, Bundle(tmp_path / "bundle"), quiet)
    assert list(importing.compare(other, manifest)) == []
    shouting(other, tmp_path)
    Jobs(other).watch(importing.computing(other, manifest, made), lambda jobs, troubles: None)
    (compared,) = importing.compare(other, manifest)
    assert (compared.pipeline, compared.same_code, compared.files, compared.equal) == ("shout", True, 6, True)
    shouting(other, tmp_path, mood="wild")
    put(other, "images", e="new", d=None)
    Jobs(other).watch(importing.computing(other, manifest, made), lambda jobs, troubles: None)
    (compared,) = importing.compare(other, manifest)
    assert not compared.same_code
    assert (compared.missing, compared.extra) == (("/d", "/mood-d"), ("/e", "/mood-e"))
    assert compared.differing == ("/mood-b", "/mood-c")


def test_libraries_are_not_mixed(library: Connection, other: Connection, tmp_path: Path) -> None:
    exported(library, tmp_path / "bundle")
    other.client.create_repo("images", project_name=other.project)
    put(other, "images", x="mine")
    with pytest.raises(LookalikeError, match="images has commits of another library"):
        importing.replay(other, Bundle(tmp_path / "bundle"), quiet)
    assert len(History(other).commits("images")) == 1


def test_nothing_is_imported_into_the_server_of_the_export(library: Connection, tmp_path: Path) -> None:
    manifest = exported(library, tmp_path / "bundle")
    made = importing.replay(library, Bundle(tmp_path / "bundle"), quiet)
    assert [new for _, new in made] == [each.id for each in manifest.commits]
    (compared,) = importing.compare(library, manifest)
    assert compared.equal
    put(library, "images", e="later")
    with pytest.raises(LookalikeError, match="images has commits of another library"):
        importing.replay(library, Bundle(tmp_path / "bundle"), quiet)


def test_the_bundle_of_another_library_is_not_overwritten(
    library: Connection, other: Connection, tmp_path: Path
) -> None:
    bundle = Bundle(tmp_path / "bundle")
    manifest = exported(library, bundle.directory)
    importing.replay(other, bundle, quiet)
    with pytest.raises(LookalikeError, match="holds the library of .* with commits that this server lacks"):
        exported(other, bundle.directory)
    assert bundle.read() == manifest


def test_a_damaged_bundle_changes_nothing(library: Connection, other: Connection, tmp_path: Path) -> None:
    bundle = Bundle(tmp_path / "bundle")
    with pytest.raises(LookalikeError, match="is not an exported library"):
        importing.replay(other, bundle, quiet)
    manifest = exported(library, bundle.directory)
    content = bundle.content(manifest.commits[-1].changes[0].sha256)
    content.write_bytes(b"eno")
    with pytest.raises(LookalikeError, match="is not the exported file"):
        importing.replay(other, bundle, quiet)
    content.unlink()
    with pytest.raises(LookalikeError, match="is missing"):
        importing.replay(other, bundle, quiet)
    written = bundle.directory / "manifest.json"
    read = json.loads(written.read_text())
    commit, change = read["commits"][0], read["commits"][0]["changes"][0]
    for part, name, value in (
        (commit, "changes", "abc"),
        (commit, "more", ""),
        (change, "path", 5),
        (change, "sha256", "../../x"),
        (read["outputs"][0], "files", []),
        (read, "commits", 3),
    ):
        before = dict(part)
        part[name] = value
        written.write_text(json.dumps(read))
        with pytest.raises(LookalikeError, match=r"manifest\.json is damaged"):
            importing.replay(other, bundle, quiet)
        part.clear()
        part.update(before)
    written.write_text(json.dumps(read).replace('"repo": "queries"', '"repo": "others"'))
    with pytest.raises(LookalikeError, match="has commits of others, which is not a source repo"):
        importing.replay(other, bundle, quiet)
    for text, said in (("{}", "not the manifest of an exported library"), ('{"format": 2}', "of another version")):
        written.write_text(text)
        with pytest.raises(LookalikeError, match=said):
            importing.replay(other, bundle, quiet)
    assert History(other).commits("images") == []


CHANGES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["one", "two", "", None]), min_size=1, max_size=3)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["images", "queries"]), CHANGES), min_size=1, max_size=5))
def test_any_history_can_be_moved(
    connection: Connection,
    unique: Unique,
    tmp_path_factory: Any,
    steps: list[tuple[str, dict[str, str | None]]],
) -> None:
    client, both = connection.client, [replace(connection, project=unique("h")) for _ in range(2)]
    for each in both:
        client.create_project(each.project)
    for repo in ("images", "queries", "models"):
        client.create_repo(repo, project_name=both[0].project)
    for repo, files in steps:
        put(both[0], repo, **files)
    bundle = Bundle(tmp_path_factory.mktemp("bundle"))
    exporting.export(both[0], bundle, [], quiet)
    for old, new in importing.replay(both[1], bundle, quiet):
        assert Repository(both[0], old.repo, old.id).hashes("/") == Repository(both[1], old.repo, new).hashes("/")
    for each in both:
        for repo in ("images", "queries", "models"):
            client.delete_repo(repo, force=True, project_name=each.project)
        client.delete_project(each.project)


def test_the_commands_report_it(
    library: Connection, as_user: Connection, other: Connection, own_configuration: Path, tmp_path: Path
) -> None:
    run = CliRunner()
    wrote = run.invoke(app, ["export", str(tmp_path / "bundle")])
    assert wrote.exit_code == 0
    assert wrote.output.startswith("wrote 5 commits with 8 files, and the hashes of the output of 0 pipelines")
    text = own_configuration.read_text()
    own_configuration.write_text(text.replace(as_user.project, other.project))
    brought = run.invoke(app, ["import", str(tmp_path / "bundle")])
    assert brought.exit_code == 0
    assert re.match(r"5 commits are here; their ids there and here: .*ids\.tsv\n", brought.output)
