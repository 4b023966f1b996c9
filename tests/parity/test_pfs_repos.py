"""Projects and repos."""

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import EXISTS, NOT_FOUND, UNKNOWN, ByVersion, Place, Refusal, branch_of, listed_repos
from tests.servers import Unique


@pytest.fixture
def project(client: Client, unique: Unique) -> str:
    """A project of one's own."""
    name = unique("project")
    client.create_project(name, "of a test")
    return name


def test_a_repo_shows_what_it_was_made_with(client: Client, place: Place) -> None:
    name = place.repo()
    client.create_repo(name, description="pictures", update=True)
    info = client.inspect_repo(name)
    assert (info.repo.project.name, info.repo.name, info.repo.type) == ("default", name, "user")
    assert info.description == "pictures"
    assert info.created.seconds > 0
    assert info.details.size_bytes == 0
    assert list(info.branches) == []


def test_an_update_creates_a_missing_repo(client: Client, unique: Unique) -> None:
    name = unique("new")
    client.create_repo(name, update=True)
    assert client.inspect_repo(name).repo.name == name
    client.delete_repo(name)
    client.delete_repo(name)  # deleting it again succeeds


def test_a_repos_size_is_that_of_the_finished_head_of_master(client: Client, place: Place) -> None:
    name = place.repo()
    commit = place.put(name, a="12345", b="678")
    client.wait_commit((name, commit))
    assert client.inspect_repo(name).details.size_bytes == 8
    (listed,) = [info for info in listed_repos(client) if info.repo.name == name]
    assert listed.size_bytes_upper_bound >= 8
    assert not listed.HasField("details")
    assert [branch.name for branch in client.inspect_repo(name).branches] == ["master"]


def test_repos_are_listed_in_order(client: Client, place: Place, by_version: ByVersion) -> None:
    made = [place.repo() for _ in range(3)]
    listed = [info.repo.name for info in listed_repos(client) if info.repo.name in made]
    assert listed == by_version(made[::-1], made)


def test_taken_and_invalid_names(client: Client, place: Place, refusal: Refusal) -> None:
    name = place.repo()
    assert refusal(client.create_repo, name) == (EXISTS, f"repo default/{name} already exists")
    assert refusal(client.create_repo, "a b") == (
        UNKNOWN,
        "name (a b) invalid: only alphanumeric characters, underscores, and dashes are allowed",
    )
    assert refusal(client.create_repo, "__filesets__") == (UNKNOWN, "__filesets__ is a reserved name")
    assert refusal(client.inspect_repo, "ghost") == (NOT_FOUND, "repo default/ghost not found")


def test_a_repo_of_the_system_needs_its_users_repo(
    stub: pfs_pb2_grpc.APIStub, place: Place, refusal: Refusal, by_version: ByVersion
) -> None:
    name = place.unique("r")
    request = pfs_pb2.CreateRepoRequest(repo=pfs_pb2.Repo(name=name, type="spec"))
    assert refusal(stub.CreateRepo, request) == (
        NOT_FOUND,
        "cannot create a system repo without a corresponding 'user' repo: "
        + by_version(
            f"repo default/{name} not found", f"repo (id=0, project=default, name={name}, type=user) not found"
        ),
    )


@pytest.mark.only_localpachd("for Pachyderm a repo without a type is another one than the user's")
def test_a_repo_without_a_type_is_the_users(stub: pfs_pb2_grpc.APIStub, place: Place) -> None:
    name = place.repo()
    assert stub.InspectRepo(pfs_pb2.InspectRepoRequest(repo=pfs_pb2.Repo(name=name))).repo.type == "user"


def test_a_repo_with_branches_downstream_is_deleted_only_by_force(
    client: Client, place: Place, refusal: Refusal, by_version: ByVersion
) -> None:
    above, below = place.repo("above"), place.repo("below")
    client.create_branch(below, "master", provenance=[branch_of(above)])
    assert refusal(client.delete_repo, above) == (
        UNKNOWN,
        by_version(
            f"delete branch default/{above}@master: branch master has [default/{below}@master] as subvenance, "
            "deleting it would break those branches",
            f'delete repo: delete branch default/{above}@master: branch "default/{above}@master" cannot be deleted '
            f"because it's in the direct provenance of [default/{below}@master]",
        ),
    )
    client.delete_repo(above, force=True)
    assert list(client.inspect_branch(below, "master").direct_provenance) == []


def test_a_project_holds_repos_of_its_own(client: Client, project: str, place: Place) -> None:
    name = place.repo()
    client.create_repo(name, project_name=project)
    assert client.inspect_repo(name, project_name=project).repo.project.name == project
    assert client.inspect_repo(name).repo.project.name == "default"
    inside = listed_repos(client, projects_filter=[pfs_pb2.Project(name=project)])
    assert [(info.repo.project.name, info.repo.name) for info in inside] == [(project, name)]


def test_projects_are_described_and_listed(client: Client, project: str) -> None:
    info = client.inspect_project(project)
    assert (info.project.name, info.description) == (project, "of a test")
    assert info.created_at.seconds > 0
    client.create_project(project, "changed", update=True)
    assert client.inspect_project(project).description == "changed"
    assert {"default", project} <= {info.project.name for info in client.list_project()}


def test_missing_taken_and_used_projects(client: Client, project: str, refusal: Refusal, by_version: ByVersion) -> None:
    missing = by_version('project "ghost" not found', 'get project by name: project "ghost" not found')
    assert refusal(client.inspect_project, "ghost") == (
        NOT_FOUND,
        f'error getting project "ghost": {missing}',
    )
    code, text = refusal(client.create_project, project)
    assert code is EXISTS
    assert text.endswith(by_version(f'project "{project}" already exists', f"project {project} already exists"))
    client.create_repo("inside", project_name=project)
    assert refusal(client.delete_project, project) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        f"cannot delete project {project}: repo {project}/inside still exists",
    )
    assert refusal(client.create_repo, "r", project_name="ghost") == (
        NOT_FOUND,
        f'cannot find project "ghost": {missing}',
    )


def test_invalid_project_names(client: Client, refusal: Refusal) -> None:
    for name, reason in {
        "a b": "name (a b) invalid: only alphanumeric characters, underscores, and dashes are allowed",
        "-a": "project names must start with an alphanumeric character",
        "a" * 60: f'project name "{"a" * 60}" is 9 characters longer than the 51 max',
    }.items():
        assert refusal(client.create_project, name) == (UNKNOWN, f"invalid project name: {reason}")


def test_the_repos_of_a_project_are_deleted_together_in_any_order(
    client: Client, stub: pfs_pb2_grpc.APIStub, unique: Unique
) -> None:
    name = unique("project")
    client.create_project(name)
    for repo in ("below", "above"):
        client.create_repo(repo, project_name=name)
    place = pfs_pb2.Project(name=name)
    above = pfs_pb2.Branch(repo=pfs_pb2.Repo(name="above", type="user", project=place), name="master")
    client.create_branch("below", "master", provenance=[above], project_name=name)
    gone = stub.DeleteRepos(pfs_pb2.DeleteReposRequest(projects=[place]))
    assert {repo.name for repo in gone.repos} == {"above", "below"}
    client.delete_project(name)
