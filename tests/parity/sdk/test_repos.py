"""Projects, repos and branches through pachyderm-sdk."""

import grpc
import pytest
from pachyderm_sdk import Client
from pachyderm_sdk.api import pfs

from tests.parity.sdk.places import Place, Refusal, Unique


def test_projects(client: Client, unique: Unique, refusal: Refusal) -> None:
    project = pfs.Project(name=unique("project"))
    assert not client.pfs.project_exists(project)
    client.pfs.create_project(project=project, description="first")
    assert client.pfs.project_exists(project)
    client.pfs.create_project(project=project, description="second", update=True)
    info = client.pfs.inspect_project(project=project)
    assert (info.project.name, info.description) == (project.name, "second")
    assert project.name in [each.project.name for each in client.pfs.list_project()]
    repo = pfs.Repo(name="r", project=project)
    client.pfs.create_repo(repo=repo)
    code, text = refusal(client.pfs.delete_project, project=project)
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert f"repo {project.name}/r still exists" in text
    client.pfs.delete_repo(repo=repo)
    client.pfs.delete_project(project=project)
    assert not client.pfs.project_exists(project)


@pytest.mark.since("2.9")
def test_a_project_is_inspected_with_its_defaults(client: Client, unique: Unique) -> None:
    project = pfs.Project(name=unique("project"))
    client.pfs.create_project(project=project, description="of a test")
    assert client.pfs.inspect_project_v2(project=project).info.description == "of a test"
    client.pfs.delete_project(project=project)


def test_repos(client: Client, place: Place, refusal: Refusal) -> None:
    repo = pfs.Repo(name=place.unique("r"))
    assert not client.pfs.repo_exists(repo)
    client.pfs.create_repo(repo=repo, description="of pictures")
    assert client.pfs.repo_exists(repo)
    info = client.pfs.inspect_repo(repo=repo)
    assert (info.repo, info.description, info.details.size_bytes) == (repo, "of pictures", 0)
    assert refusal(client.pfs.create_repo, repo=repo) == (
        grpc.StatusCode.ALREADY_EXISTS, f"repo default/{repo.name} already exists",
    )  # fmt: skip
    client.pfs.create_repo(repo=repo, description="of sounds", update=True)
    (listed,) = [each for each in client.pfs.list_repo(type="user") if each.repo == repo]
    assert listed.description == "of sounds"
    client.pfs.delete_repo(repo=repo)
    client.pfs.delete_repo(repo=repo)
    assert refusal(client.pfs.inspect_repo, repo=repo) == (
        grpc.StatusCode.NOT_FOUND, f"repo default/{repo.name} not found",
    )  # fmt: skip


def test_branches(client: Client, place: Place, refusal: Refusal) -> None:
    master = place.branch()
    other = pfs.Branch(repo=master.repo, name="other")
    assert not client.pfs.branch_exists(master)
    first, second = place.put(master, a="1"), place.put(master, a="2")
    client.pfs.create_branch(branch=other, head=first)
    assert client.pfs.branch_exists(other)
    assert client.pfs.inspect_branch(branch=other).head.id == first.id
    assert [each.branch.name for each in client.pfs.list_branch(repo=master.repo)] == ["other", "master"]
    client.pfs.create_branch(branch=other, head=second)
    assert client.pfs.inspect_branch(branch=other).head.id == second.id
    client.pfs.delete_branch(branch=other)
    assert refusal(client.pfs.inspect_branch, branch=other) == (
        grpc.StatusCode.NOT_FOUND, f'branch "other" not found in repo default/{master.repo.name}',
    )  # fmt: skip
