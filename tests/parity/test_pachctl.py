"""The everyday commands of pachctl, as people type them: each exit status, and the output that people rely on.

Each program that PACHCTL names is tried, of any version from 2.7 to 2.12; see `tests/pachctl.py`.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import pytest

from tests.conditions import until
from tests.pachctl import PROGRAMS
from tests.servers import Pachd, Unique


class Pachctl(Protocol):
    """Runs a command in an empty directory and returns what it prints. `given` is its input; `fails`: it must fail."""

    def __call__(self, *words: str, given: str = "", fails: bool = False) -> str: ...


@pytest.fixture(params=PROGRAMS)
def pachctl(request: pytest.FixtureRequest, pachd: Pachd, tmp_path: Path) -> Iterator[Pachctl]:
    """See Pachctl."""
    env = {**os.environ, "PACH_CONFIG": str(tmp_path / "config.json")}
    env.pop("PACHD_ADDRESS", None)

    def run(*words: str, given: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            [request.param, *words], input=given, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert (done.returncode != 0) is fails, f"pachctl {' '.join(words)}: {done.returncode}\n{said}"
        assert "panic" not in said
        return re.sub(r"\x1b\[\d*m", "", said)

    run("connect", pachd.address)
    yield run


@pytest.fixture
def newer(pachctl: Pachctl) -> bool:
    """Whether the program has the commands of 2.8 and later."""
    return "rerun" in pachctl("--help")


def _column(table: str, number: int) -> list[str]:
    return [line.split()[number] for line in table.splitlines()[1:] if line.strip()]


def _paths(table: str) -> list[str]:
    return re.findall(r"(?m)(?:^|\t|\s)(/\S*)", table)


def _spec(name: str, repo: str, script: str = "") -> str:
    return json.dumps(
        {
            "pipeline": {"name": name},
            "input": {"pfs": {"repo": repo, "glob": "/*"}},
            "transform": {"image": "ubuntu:20.04", "cmd": ["sh"], "stdin": [script or f"cp /pfs/{repo}/* /pfs/out/"]},
        }
    )


def test_projects_and_repos(pachctl: Pachctl, unique: Unique, newer: bool) -> None:
    project, repo = unique("project"), unique("repo")
    pachctl("create", "project", project, "-d", "first")
    pachctl("update", "project", project, "-d", "second")
    assert "second" in pachctl("inspect", "project", project)
    assert project in pachctl("list", "project")
    pachctl("create", "repo", repo, "--project", project, "-d", "of pictures")
    assert "of pictures" in pachctl("inspect", "repo", repo, "--project", project)
    assert _column(pachctl("list", "repo", "--project", project), 1) == [repo]
    assert repo in pachctl("list", "repo", "-A")
    pachctl("create", "repo", repo, "--project", project, fails=True)
    pachctl("delete", "repo", repo, "--project", project)
    pachctl("delete", "repo", repo, "--project", project, fails=newer)
    pachctl("delete", "project", project, given="y\n")
    pachctl("inspect", "project", project, fails=True)


def test_commits_and_files(pachctl: Pachctl, unique: Unique, tmp_path: Path) -> None:
    repo = unique("repo")
    pachctl("create", "repo", repo)
    (tmp_path / "a").write_text("one\n")
    at = f"{repo}@master"
    pachctl("put", "file", f"{at}:/a", "-f", "a")
    pachctl("put", "file", f"{at}:/d/b", "-f", "-", given="two\n")
    assert pachctl("get", "file", f"{at}:/d/b") == "two\n"
    assert _paths(pachctl("list", "file", at)) == ["/a", "/d/"]
    assert _paths(pachctl("glob", "file", f"{at}:/**")) == ["/a", "/d/", "/d/b"]
    assert "Type: dir" in pachctl("inspect", "file", f"{at}:/d")
    pachctl("copy", "file", f"{at}:/a", f"{at}:/c")
    pachctl("delete", "file", f"{at}:/d", "-r")
    assert "/d/" in pachctl("diff", "file", f"{at}:/", "--name-only")
    pachctl("get", "file", f"{at}:/", "-r", "-o", "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "c"]
    commit = pachctl("start", "commit", at, "-m", "by hand").strip()
    pachctl("put", "file", f"{at}:/e", "-f", "a")
    pachctl("finish", "commit", at)
    pachctl("wait", "commit", at)
    assert "by hand" in pachctl("inspect", "commit", f"{repo}@{commit}")
    assert re.findall(r"\b[0-9a-f]{32}\b", pachctl("list", "commit", repo))[0] == commit
    assert commit in pachctl("list", "commit")
    assert commit in pachctl("list", "commit", commit)
    pachctl("create", "branch", f"{repo}@old", "--head", f"{at}^")
    assert _column(pachctl("list", "branch", repo), 0) == ["old", "master"]
    pachctl("inspect", "branch", f"{repo}@old")
    pachctl("delete", "branch", f"{repo}@old")
    assert "not found" in pachctl("get", "file", f"{at}:/ghost", fails=True)
    assert "not found" in pachctl("put", "file", "ghost@master:/a", "-f", "a", fails=True)
    pachctl("delete", "repo", repo)


def test_pipelines_jobs_and_datums(pachctl: Pachctl, unique: Unique, tmp_path: Path) -> None:
    repo, name = unique("repo"), unique("pipeline")
    pachctl("create", "repo", repo)
    pachctl("put", "file", f"{repo}@master:/a", "-f", "-", given="one\n")
    pachctl("create", "pipeline", "-f", "-", given=_spec(name, repo))
    pachctl("wait", "commit", f"{name}@master")
    assert pachctl("get", "file", f"{name}@master:/a") == "one\n"
    assert name in pachctl("list", "pipeline", "--state", "running")
    assert "running" in pachctl("inspect", "pipeline", name)
    job = _column(pachctl("list", "job", "-p", name), 2)[0]
    assert "success" in pachctl("wait", "job", f"{name}@{job}")
    assert "success" in pachctl("inspect", "job", f"{name}@{job}")
    assert job in pachctl("list", "job")
    assert name in pachctl("list", "job", job)
    (datum,) = _column(pachctl("list", "datum", f"{name}@{job}"), 0)
    assert "SUCCESS" in pachctl("inspect", "datum", f"{name}@{job}", datum)
    assert datum in pachctl("list", "datum", "-f", "-", given=_spec(name, repo))
    pachctl("update", "pipeline", "-f", "-", "--reprocess", given=_spec(name, repo, "echo said; exit 3"))
    pachctl("wait", "commit", f"{name}@master")
    assert "said" in pachctl("logs", "-p", name)
    assert "failure" in pachctl("list", "job", "-p", name, "--state", "failure")
    assert _column(pachctl("list", "pipeline", name, "--history", "all"), 2) == ["2", "1"]
    (tmp_path / "edit").write_text("#!/bin/sh\nsed -i 's/exit 3/exit 0/' \"$1\"\n")
    (tmp_path / "edit").chmod(0o755)
    pachctl("edit", "pipeline", name, "--editor", "./edit")
    pachctl("wait", "commit", f"{name}@master")
    assert _column(pachctl("list", "pipeline", name), 2) == ["3"]
    pachctl("draw", "pipeline")
    pachctl("stop", "pipeline", name)
    pachctl("start", "pipeline", name)
    pachctl("delete", "job", f"{name}@{job}")
    pachctl("create", "pipeline", "-f", "-", given=_spec(name, repo), fails=True)
    pachctl("delete", "pipeline", name)
    pachctl("inspect", "pipeline", name, fails=True)
    pachctl("delete", "repo", repo)


@pytest.mark.skipif(
    not Path("/dev/fuse").exists() or shutil.which("fusermount") is None, reason="pachctl mount needs FUSE"
)
def test_mounting(pachctl: Pachctl, unique: Unique, tmp_path: Path) -> None:
    repo, mounted = unique("repo"), tmp_path / "mounted"
    mounted.mkdir()
    pachctl("create", "repo", repo)
    pachctl("put", "file", f"{repo}@master:/d/a", "-f", "-", given="one\n")
    with ThreadPoolExecutor() as pool:
        done = pool.submit(pachctl, "mount", "-w", "-r", f"{repo}+w", "mounted")
        until(lambda: done.done() or mounted.is_mount())
        assert not done.done(), done.result()
        assert (mounted / repo / "d" / "a").read_text() == "one\n"
        (mounted / repo / "b").write_text("two\n")
        pachctl("unmount", "mounted")
        done.result()
    assert pachctl("get", "file", f"{repo}@master:/b") == "two\n"
    pachctl("delete", "repo", repo)


def test_transactions(pachctl: Pachctl, unique: Unique) -> None:
    repo, other, name = unique("repo"), unique("other"), unique("pipeline")
    pachctl("create", "repo", repo)
    pachctl("put", "file", f"{repo}@master:/a", "-f", "-", given="one\n")
    assert "no active transaction" in pachctl("finish", "transaction", fails=True)
    begun = re.findall(r"[0-9a-f]{32}", pachctl("start", "transaction"))[0]
    assert "already exists" in pachctl("start", "transaction", fails=True)
    added = f"Added to transaction: {begun}"
    assert added in pachctl("create", "repo", other)
    assert "error running request 2 of 2" in pachctl("create", "repo", other, fails=True)
    assert added in pachctl("update", "repo", other, "-d", "better")
    assert pachctl("start", "commit", f"{repo}@master").split() == [*added.split(), begun]
    assert added in pachctl("finish", "commit", f"{repo}@master")
    assert added in pachctl("create", "branch", f"{other}@b")
    assert added in pachctl("delete", "branch", f"{other}@b")
    assert added in pachctl("delete", "repo", unique("ghost"))
    assert added in pachctl("create", "pipeline", "-f", "-", given=_spec(name, repo))
    shown = pachctl("inspect", "transaction")
    assert [line.strip() for line in shown.splitlines()[3:6]] == [
        f"create repo default/{other}",
        f"update repo default/{other}",
        f"start commit default/{repo}@master ({begun})",
    ]
    assert f"finish commit default/{repo}@" in shown and f"delete branch default/{other}@b" in shown
    assert f"create pipeline default/{name}" in shown and "ERROR" not in shown
    assert begun in pachctl("inspect", "transaction", begun, "--raw")
    listed = [line.split() for line in pachctl("list", "transaction").splitlines()]
    assert [line[-1] for line in listed if line[0] == begun] == ["8"]
    assert f"Cleared active transaction: {begun}" in pachctl("stop", "transaction")
    pachctl("inspect", "repo", other, fails=True)
    assert "with 8 requests" in pachctl("resume", "transaction", begun)
    assert f"Completed transaction with 8 requests: {begun}" in pachctl("finish", "transaction")
    pachctl("wait", "commit", f"{name}@master")
    assert pachctl("get", "file", f"{name}@{begun}:/a") == "one\n"
    assert "not found" in pachctl("resume", "transaction", begun, fails=True)
    pachctl("start", "transaction")
    pachctl("delete", "repo", other)
    pachctl("delete", "transaction")
    assert "no active transaction" in pachctl("inspect", "transaction", fails=True)
    empty = re.findall(r"[0-9a-f]{32}", pachctl("start", "transaction"))[0]
    assert f"with 0 requests: {empty}" in pachctl("finish", "transaction", empty)
    pachctl("delete", "pipeline", name)
    pachctl("delete", "repo", other)
    pachctl("delete", "repo", repo)


def test_templates_and_secrets(pachctl: Pachctl, unique: Unique, tmp_path: Path) -> None:
    repo, name, secret = unique("repo"), unique("pipeline"), unique("secret")
    pachctl("create", "repo", repo)
    (tmp_path / "t.jsonnet").write_text(
        'function(name, repo) { pipeline: { name: name }, transform: { cmd: ["true"], image: "ubuntu:20.04" },'
        ' input: { pfs: { glob: "/*", repo: repo } } }'
    )
    pachctl("create", "pipeline", "--jsonnet", "t.jsonnet", "--arg", f"name={name}", "--arg", f"repo={repo}")
    assert "Missing argument" in pachctl("create", "pipeline", "--jsonnet", "t.jsonnet", fails=True)
    pachctl("delete", "pipeline", name)
    pachctl("delete", "repo", repo)
    kubernetes = {"kind": "Secret", "metadata": {"name": secret}, "stringData": {"key": "value"}}
    (tmp_path / "s.json").write_text(json.dumps(kubernetes))
    pachctl("create", "secret", "-f", "s.json")
    assert secret in pachctl("list", "secret")
    assert "Opaque" in pachctl("inspect", "secret", secret)
    pachctl("delete", "secret", secret)
    pachctl("delete", "secret", secret, fails=True)


def test_the_commands_added_in_2_8(pachctl: Pachctl, newer: bool, unique: Unique) -> None:
    if not newer:
        pytest.skip("this pachctl is older than 2.8")
    repo, name, project = unique("repo"), unique("pipeline"), unique("project")
    pachctl("create", "repo", repo)
    pachctl("create", "project", project)
    defaults = json.dumps({"createPipelineRequest": {"datumTries": "9"}})
    pachctl("create", "defaults", "--project", project, given=defaults)
    assert '"9"' in pachctl("inspect", "defaults", "--project", project)
    assert "{}" in pachctl("inspect", "defaults", "--cluster")
    spec = json.loads(_spec(name, repo))
    spec["input"]["pfs"]["project"] = "default"
    text = json.dumps(spec)
    shown = pachctl("create", "pipeline", "--project", project, "--dry-run", "--raw", "-f", "-", given=text)
    assert json.loads(shown)["datumTries"] == "9"
    pachctl("create", "pipeline", "--project", project, "-f", "-", given=text)
    assert "Effective Spec" in pachctl("inspect", "pipeline", name, "--project", project)
    pachctl("rerun", "pipeline", name, "--project", project)
    pachctl("rerun", "pipeline", name, "--project", project, "--reprocess")
    assert "affected" in pachctl("delete", "defaults", "--project", project, "--regenerate")
    # While the pipeline restarts, a line about errors follows.
    assert _column(pachctl("list", "pipeline", name, "--project", project), 2)[0] == "4"
    assert "not found" in pachctl("stop", "pipeline", "ghost", fails=True)
    assert "not found" in pachctl("delete", "pipeline", "ghost", fails=True)
    pachctl("delete", "pipeline", name, "--project", project)
    pachctl("delete", "project", project, given="y\n")
    pachctl("delete", "repo", repo)


def test_the_rarer_commands(pachctl: Pachctl, unique: Unique, tmp_path: Path, on_localpachd: bool) -> None:
    repo, name = unique("repo"), unique("pipeline")
    pachctl("create", "repo", repo)
    at = f"{repo}@master"
    for text in ("one", "two"):
        pachctl("put", "file", f"{at}:/a", "-f", "-", given=text)
    pachctl("wait", "commit", at)
    first = re.findall(r"\b[0-9a-f]{32}\b", pachctl("list", "commit", repo))[1]
    assert first in pachctl("find", "commit", f"{at}:/a")
    pachctl("squash", "commit", first)
    assert first not in pachctl("list", "commit", repo)
    (tmp_path / "spec.json").write_text(_spec(name, repo))
    pachctl("validate", "pipeline", "-f", "spec.json")
    pachctl("create", "pipeline", "-f", "spec.json")
    job = _column(pachctl("list", "job", "-p", name), 2)[0]
    assert "success" in pachctl("wait", "job", job)
    assert "could not be found" in pachctl("restart", "datum", f"{name}@{job}", "/a", fails=True)  # it has ended
    pachctl("stop", "job", job)
    pachctl("stop", "job", f"{name}@{job}")
    assert "cron input" in pachctl("run", "cron", name, fails=True)
    pachctl("delete", "pipeline", name)
    pachctl("delete", "commit", _column(pachctl("list", "commit", repo), 2)[0])
    pachctl("delete", "repo", repo)
    if on_localpachd:  # Pachyderm keeps some errors for ever
        assert "No errors found" in pachctl("fsck")
    assert re.match(r"[0-9a-f]{32}\n", pachctl("inspect", "cluster"))
    pachctl("version")
    pachctl("list", "task", "pps")
    pachctl("list", "task", "pfs")
    pachctl("config", "list", "context")
    pachctl("buildinfo")


@pytest.mark.only_localpachd("Pachyderm supports most of them")
def test_unsupported_commands_fail_with_one_line(pachctl: Pachctl, newer: bool) -> None:
    refused = [("kube-events",), ("loki", "{}"), ("run", "pps-load-test"), ("run", "pfs-load-test"), ("auth", "whoami")]
    for words in (*refused, *([("logs2",)] if newer else [])):
        (line,) = pachctl(*words, fails=True).splitlines()
        assert re.search("localpachd|auth service is not activated", line)
    pachctl("logs")


@pytest.mark.only_localpachd("these are the names in its own archives")
def test_the_commands_for_reports_of_bugs(pachctl: Pachctl, tmp_path: Path) -> None:
    assert "name: pachd" in pachctl("debug", "template")
    pachctl("debug", "dump", "dump.tgz")
    pachctl("debug", "binary", "binary.tgz")
    pachctl("debug", "profile", "cpu", "-d", "1s", "cpu.tgz")
    pachctl("debug", "profile", "heap", "heap.tgz")
    for archive, member in {"dump": "version.txt", "binary": "__main__.py", "cpu": "cpu", "heap": "heap"}.items():
        with tarfile.open(tmp_path / f"{archive}.tgz") as opened:
            assert member in {Path(name).name for name in opened.getnames()}
    for level in ("debug", "info"):
        assert "localpachd" in pachctl("debug", "log-level", level)


def test_the_commands_added_in_2_10(pachctl: Pachctl, newer: bool, unique: Unique, on_localpachd: bool) -> None:
    if not newer:
        pytest.skip("this pachctl is older than 2.8")
    repo, name, project = unique("repo"), unique("pipeline"), unique("project")
    pachctl("create", "project", project)
    pachctl("create", "repo", repo)
    at = f"{repo}@master"
    pachctl("put", "file", f"{at}:/a", "-f", "-", given="one")
    noted = {"project": project, "repo": repo, "branch": at, "commit": at}
    edits = [word for kind, which in noted.items() for word in (kind, which, "add", "k=v")]
    assert "ok" in pachctl("edit", "metadata", *edits, "cluster", ".", "edit", f"{project}=1")
    for kind, which in noted.items():
        assert re.search(r'"metadata": +{\s+"k": +"v"', pachctl("inspect", kind, which, "--raw"))
    assert project in pachctl("inspect", "cluster", "--raw")
    assert "already exists" in pachctl("edit", "metadata", "repo", repo, "add", "k=w", fails=True)
    pachctl("edit", "metadata", "cluster", ".", "delete", project, "repo", repo, "replace", "{}")
    pachctl("create", "pipeline", "-f", "-", given=_spec(name, repo, "echo said"))
    pachctl("wait", "commit", f"{name}@master")
    pachctl("edit", "metadata", "pipeline", name, "add", "k=v")
    assert "said" in pachctl("logs2", "--pipeline", name)
    pachctl("check", "status", "--project", "default")
    if on_localpachd:
        pachctl("debug", "trace", "-d", "1s", "trace")
    pachctl("delete", "pipeline", name)
    pachctl("put", "file", f"{at}:/a", "-f", "-", given="two")
    pachctl("wait", "commit", at)
    pachctl("squash", "commitV2", f"{repo}@master^")
    pachctl("delete", "commitV2", at)
    pachctl("delete", "repo", repo)
    pachctl("delete", "project", project, given="y\n")
