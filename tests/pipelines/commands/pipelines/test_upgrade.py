"""`lookalike upgrade` and the way back, on a library of small stages."""

import json
import os
import pty
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.commands.pipelines.upgrade_text import FIELDS
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts
from pipelines.upgrades import upgrade_plan, upgrade_transaction
from pipelines.upgrades.upgrade_plan import UpgradeRecord
from tests.command import Command, next_line
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import SpecFiles, create_foreign, deploy_specs, shell_spec
from tests.pipelines.upgrades.pipeline_infos import env

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone]

FIRST = """
{ cat "$images"; echo "$LOOKALIKE_STAGE, K=$K"; } > "${LOCALPACHD_PFS:-/pfs}/out/$(basename "$images")"
"""

RENDER = """
out="${LOCALPACHD_PFS:-/pfs}/out/$(basename "$first")"
mkdir -p "$out"
printf '{"query": "%s", "neighbors": []}\\n' "$(tr '\\n' ' ' < "$first")" > "$out/neighbors.jsonl"
echo grid > "$out/grid.png"
echo page > "$out/index.html"
"""


def document(name: str, repo: str, script: str, **variables: str) -> dict[str, Any]:
    """A specification that computes each file of a repo alone."""
    found = shell_spec(name, repo, script, resource_requests={"cpu": 0.1, "memory": "64Mi"})
    found["transform"]["env"] = variables
    return found


@dataclass
class Library(SpecFiles):
    """images → first → render, and the directory of the installed specifications, which begins with stages 1."""

    connection: Connection
    command: Command
    wait_for_jobs: WaitForJobs

    def __post_init__(self) -> None:
        super().__init__(self.command.directory / "specs")
        self.write(document("first", "images", FIRST, LOOKALIKE_STAGE="first-1", K="3"))
        self.write(document("render", "first", RENDER, LOOKALIKE_STAGE="render-1"))

    def put(self) -> str:
        commit = Repository(self.connection, "images").write([PutFile("/a", b"one\n"), PutFile("/b", b"two\n")])
        self.wait_for_jobs(commit)
        return commit

    def settled(self, name: str = "first") -> str:
        """Waits for the newest job of a pipeline, and the others of its commit set; returns the commit."""
        job = ProjectJobs(self.connection).newest(name)
        assert job is not None
        assert {each.state for each in self.wait_for_jobs(job.id)} == {"success"}
        return job.id

    def upgrade(self, *arguments: str) -> str:
        said = self.command.says("upgrade", "--yes", *arguments)
        self.settled()
        return said

    def outputs(self) -> dict[str, tuple[dict[str, bytes], dict[str, bytes]]]:
        """The files of all outputs, and Pachyderm's hashes of them."""
        repos = [Repository(self.connection, name) for name in ("first", "render")]
        return {each.name: (dict(each.read_all("/**")), each.hashes("/")) for each in repos}

    def versions(self) -> dict[str, int]:
        return {name: info.version for name, info in ProjectJobs(self.connection).pipelines().items()}

    def sheets(self, name: str, *arguments: str) -> dict[str, bytes]:
        """The files that `results` writes."""
        self.command.says("results", "-o", name, *arguments)
        written = self.command.directory / name
        found = [path for path in written.rglob("*") if path.is_file() and path.parent != written]
        return {str(path.relative_to(written)): path.read_bytes() for path in found}


@pytest.fixture
def library(as_user: Connection, command: Command, wait_for_jobs: WaitForJobs) -> Library:
    return Library(as_user, command, wait_for_jobs)


@pytest.mark.late_alone(False)
def test_an_upgrade_and_the_way_back(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = library.command
    command.says("deploy", "--set", "K=7")
    old = library.put()
    before, sheets, versions = library.outputs(), library.sheets("before"), library.versions()
    assert before["first"][0]["/a"] == b"one\nfirst-1, K=7\n"
    history = json.loads(command.says("history", "--json"))
    library.change("first", {"transform": {"env": {"LOOKALIKE_STAGE": "first-2", "NEW": "x"}}})
    library.change("render", {"resource_requests": {"memory": "128Mi"}})

    shown = command.says("upgrade", "--dry-run")
    assert "code first-1 → first-2, environment" in shown
    assert "resources; nothing is computed again" in shown
    assert "kept: K=7 in first\n" in shown
    assert "in total: up to 4 datums, about " in shown
    assert library.versions() == versions
    refused = command.fails("upgrade")
    assert refused == "nothing was changed: without a terminal to ask on, --yes goes on, --dry-run only shows"

    said = library.upgrade()
    commit = library.settled()
    assert f"\nupgraded: commit {commit}\n" in said
    assert "the way back: `lookalike upgrade --back`\n" in said
    assert library.versions() == {"first": 2, "render": 2}
    assert library.outputs()["first"][0]["/a"] == b"one\nfirst-2, K=7\n"
    change, *earlier = json.loads(command.says("history", "--json"))
    assert earlier == history
    assert change["ids"] == [commit]  # one transaction, and one change
    assert {each["name"]: each["pipelines"] for each in change["settings"]}["LOOKALIKE_STAGE"] == ["first"]
    assert library.sheets("then", "--at", old) == sheets
    assert library.sheets("now") != sheets
    assert "nothing to do\n" in command.says("upgrade", "--yes")
    assert library.versions() == {"first": 2, "render": 2}

    command.says("deploy", "--set", "K=8")  # keeps the way back
    back = library.upgrade("--back")
    assert "code first-2 → first-1, environment" in back
    assert "back to the version before: commit " in back
    assert library.outputs() == before
    assert library.sheets("again") == sheets
    assert command.fails("upgrade", "--back", "--yes").startswith("there is no upgrade to go back from")


def test_a_repo_that_the_newer_version_reads_is_named_and_made(library: Library) -> None:
    library.command.says("deploy")
    library.put()
    joined = {"branch": "master", "glob": "/(*)", "join_on": "$1", "outer_join": True}
    both = [{"pfs": {"name": name, "repo": name, **joined}} for name in ("images", "masks")]
    changes = {"input": {"pfs": None, "join": both}, "transform": {"env": {"LOOKALIKE_STAGE": "first-2"}}}
    library.change("first", changes)
    assert "new repo: masks, which may stay empty\n" in library.command.says("upgrade", "--dry-run")
    library.upgrade()
    assert library.outputs()["first"][0]["/a"] == b"one\nfirst-2, K=3\n"
    assert "new repo" not in library.command.says("upgrade", "--dry-run")


def test_the_way_back_takes_one_upgrade_at_a_time(library: Library) -> None:
    library.command.says("deploy")
    library.put()
    outputs = [library.outputs()]
    for number in (2, 3):
        library.change("first", env(LOOKALIKE_STAGE=f"first-{number}"))
        if number == 2:
            library.change("render", env(LOOKALIKE_STAGE="render-2"))
        data = json.loads(library.command.run("upgrade", "--yes", "--json").stdout)
        assert [*data] == [*FIELDS]
        assert (data["number"], data["commit"]) == (number - 1, library.settled())
        outputs.append(library.outputs())
    assert [each["change"] for each in data["pipelines"]] == ["changed", "unchanged"]
    assert [(each["pipeline"], each["anew"], each["datums"]) for each in data["costs"]] == [
        ("first", True, 2),
        ("render", False, 2),
    ]
    assert data["total"]["bytes"] > 0
    for expected in (outputs[1], outputs[0]):
        library.upgrade("--back")
        assert library.outputs() == expected
    library.upgrade()
    assert library.outputs() == outputs[2]


def test_pipelines_that_are_new_or_no_longer_used(library: Library) -> None:
    command = library.command
    command.says("deploy")
    library.put()
    library.write(document("more", "first", "true", LOOKALIKE_STAGE="more-1"))
    (library.directory / "render.json").unlink()
    said = library.upgrade()
    assert "no longer used: stays as it is" in said
    assert library.versions() == {"first": 1, "render": 1, "more": 1}
    library.write(document("reader", "more", "true"))
    command.says("deploy")
    kept = library.upgrade("--back")
    assert "stays, for reader" in kept
    assert "more" in library.versions()
    library.connection.client.delete_pipeline("reader", project_name=library.connection.project)
    assert "deleted, with its output: the upgrade created it" in library.upgrade("--back")
    assert library.versions() == {"first": 1, "render": 1}


def test_pipelines_of_pachctl_are_ours_and_other_peoples_are_not(library: Library) -> None:
    """By their stage, without the annotation of a deployment."""
    library.connection.client.create_repo("images", project_name=library.connection.project)
    for name, repo, script in (("first", "images", FIRST), ("render", "first", RENDER), ("older", "images", "true")):
        create_foreign(library.connection, document(name, repo, script, LOOKALIKE_STAGE=f"{name}-0", K="3"))
    create_foreign(library.connection, document("theirs", "images", "true"))
    said = library.upgrade()
    assert re.search(r"^older +no longer used: stays as it is", said, re.MULTILINE) and "theirs" not in said
    assert library.versions() == {"first": 2, "render": 2, "older": 1, "theirs": 1}
    library.write(document("theirs", "images", "true", LOOKALIKE_STAGE="theirs-1"))
    assert library.command.fails("upgrade", "--dry-run").startswith("theirs in this project is not lookalike's: give")


def test_a_choice_that_cannot_be_kept_is_refused_until_someone_decides(library: Library) -> None:
    command = library.command
    command.says("deploy")
    (command.directory / "mine.json").write_text(
        json.dumps({"pipelines": {"render": {"input": {"pfs": {"lazy": True}}}}})
    )
    command.says("deploy", "--overlay", "mine.json")
    library.change("render", {"input": {"pfs": {"glob": "/"}}})
    versions = library.versions()
    assert command.fails("upgrade", "--yes") == (
        "render: its input is neither the installed one nor known to be of an overlay: repeat the overlays of its "
        "deployment with --overlay, or take the installed one with --as-written render; nothing was changed"
    )
    assert library.versions() == versions
    library.upgrade("--overlay", "mine.json")
    leaf = ProjectJobs(library.connection).pipelines()["render"].details.input.pfs
    assert (leaf.glob, leaf.lazy) == ("/", True)
    library.upgrade("--as-written", "render")
    assert not ProjectJobs(library.connection).pipelines()["render"].details.input.pfs.lazy


def test_an_upgrade_that_was_killed_is_done_by_the_next(library: Library) -> None:
    library.command.says("deploy")
    library.put()
    library.change("first", env(LOOKALIKE_STAGE="first-2"))
    with library.command.start("upgrade", "--yes") as killed:
        next_line(killed, "in total")
        killed.kill()
    library.command.says("upgrade", "--yes")
    library.settled()
    assert library.versions() == {"first": 2, "render": 1}
    assert library.outputs()["first"][0]["/a"] == b"one\nfirst-2, K=3\n"


def test_a_plan_for_pipelines_that_have_changed_since_is_refused(library: Library) -> None:
    command = library.command
    command.says("deploy")
    library.change("first", env(LOOKALIKE_STAGE="first-2"))
    then = ProjectJobs(library.connection).pipelines()
    found = drafts.find([library.directory])
    plan = upgrade_plan.plan(library.connection, then, found, found)
    assert plan.record == UpgradeRecord(1, {"first": then["first"].spec_commit.id})
    command.says("deploy", "--set", "K=8")
    versions = library.versions()
    with pytest.raises(LookalikeError, match="first was deployed meanwhile, and nothing was changed: run this again"):
        upgrade_transaction.send(library.connection, plan, then)
    assert library.versions() == versions


def test_it_asks_on_a_terminal(library: Library) -> None:
    library.command.says("deploy")
    library.change("first", env(LOOKALIKE_STAGE="first-2"))
    for answer, version, code in (("n", 1, 1), ("y", 2, 0)):
        ours, theirs = pty.openpty()
        with library.command.start("upgrade", stdin=theirs) as asking:
            os.write(ours, f"{answer}\n".encode())
            said, asked = asking.communicate(timeout=60)
            os.close(ours)
            os.close(theirs)
        assert (asking.returncode, "upgrade? [y/N]" in asked) == (code, True), said + asked
        assert library.versions() == {"first": version, "render": 1}


def test_there_must_be_something_to_upgrade(library: Library) -> None:
    assert library.command.fails("upgrade", "--dry-run").startswith("none of these pipelines is deployed here")
    assert "takes no --overlay" in library.command.run("upgrade", "--back", "--set", "K=1").stderr


def test_an_opt_in_pipeline_gets_what_its_newer_version_reads(library: Library) -> None:
    """As trainings read labels from annotations, which are opt-in too."""
    command, home = library.command, library.directory
    divided = 'cp "$first" "${LOCALPACHD_PFS:-/pfs}/out"'
    for name in ("classify", "annotations"):
        (home / name).mkdir()
    labelled = home / "classify" / "labelled.json"
    command.says("deploy")
    library.put()
    deploy_specs(library.connection, document("labelled", "first", divided, LOOKALIKE_STAGE="labelled-5"))
    library.settled("labelled")

    reading = 'cp "$annotations" "${LOCALPACHD_PFS:-/pfs}/out"'
    labelled.write_text(json.dumps(document("labelled", "annotations", reading, LOOKALIKE_STAGE="labelled-6")))
    dealt = document("annotations", "first", divided, LOOKALIKE_STAGE="annotations-1")
    (home / "annotations" / "annotations.json").write_text(json.dumps(dealt))
    shown = command.says("upgrade", "--dry-run")
    assert re.search(r"^annotations +new *\n", shown, re.M)
    assert re.search(r"^labelled +code labelled-5 → labelled-6, ", shown, re.M)
    command.says("upgrade", "--yes")
    library.settled("labelled")
    assert Repository(library.connection, "labelled").exists("/a")
    assert "annotations  deleted, with its output: the upgrade created it\n" in command.says(
        "upgrade", "--back", "--yes"
    )
    library.settled("labelled")
    assert "annotations" not in ProjectJobs(library.connection).pipelines()
