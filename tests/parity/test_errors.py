"""The codes and texts of failures that users and scripts see, to the letter, through the official client."""

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import (
    EXISTS,
    INVALID,
    NOBODY,
    NOT_FOUND,
    UNKNOWN,
    ByVersion,
    MakeInput,
    Place,
    Refusal,
    finished,
)

TRUE = pps_pb2.Transform(image="ubuntu:20.04", cmd=["true"])


def test_missing_pipelines(client: Client, refusal: Refusal, by_version: ByVersion) -> None:
    text = 'pipeline was not inspected: couldn\'t find up to date spec for pipeline "default/ghost": ' + by_version(
        'branch "master" not found in repo default/ghost.spec',
        "pick commit tx: commit default/ghost.spec@ not found\nrepo default/ghost.spec not found\n"
        'pipeline "default/ghost" not found',
    )
    assert refusal(client.inspect_pipeline, "ghost") == (NOT_FOUND, text)
    assert refusal(client.start_pipeline, "ghost")[0] is NOT_FOUND
    code, text = refusal(client.list_job, pipeline_name="ghost")
    assert code is NOT_FOUND
    assert text.endswith('pipeline "default/ghost" not found')
    # Stopping and deleting are silent.
    client.stop_pipeline("ghost")
    client.delete_pipeline("ghost")


def test_missing_jobs_and_datums(place: Place, pfs: MakeInput, client: Client, refusal: Refusal) -> None:
    repo = place.repo()
    name = place.pipeline("true", input=pfs(repo))
    commit = place.put(repo, a="1")
    place.job(name, commit)
    assert refusal(client.inspect_job, NOBODY, pipeline_name=name)[0] is NOT_FOUND
    assert refusal(client.inspect_datum, name, commit, "f" * 64) == (
        UNKNOWN,
        f"datum {'f' * 64} not found in job default/{name}@{commit}",
    )


def test_taken_names(place: Place, pfs: MakeInput, client: Client, refusal: Refusal) -> None:
    repo = place.repo()
    name = place.pipeline("true", input=pfs(repo))
    assert refusal(client.create_pipeline, name, transform=TRUE, input=pfs(repo)) == (
        EXISTS,
        f'pipeline "default/{name}" already exists',
    )
    assert refusal(client.create_repo, repo) == (EXISTS, f"repo default/{repo} already exists")
    taken = place.repo("taken")
    code, text = refusal(client.create_pipeline, taken, transform=TRUE, input=pfs(repo))
    assert code is UNKNOWN
    assert f'"{taken}" cannot be created because a repo with the same name already exists' in text.replace(
        "default/", ""
    )


def test_invalid_inputs(place: Place, pfs: MakeInput, client: Client, refusal: Refusal) -> None:
    repo, name = place.repo(), place.unique("p")

    def create(given: pps_pb2.Input) -> tuple[grpc.StatusCode, str]:
        return refusal(client.create_pipeline, name, transform=TRUE, input=given)

    assert create(pfs("ghost")) == (NOT_FOUND, "repo default/ghost not found")
    for given, text in (
        (pfs(""), "input must specify a name"),
        (pfs("", name="n"), "input must specify a repo"),
        (pfs("out"), "input cannot be named out"),
        (pfs(repo, name="out"), "input cannot be named out"),
        (pfs(repo, name=".env"), "input cannot be named .env"),
        (pfs(repo, glob=""), "input must specify a glob"),
        (pps_pb2.Input(cross=[pfs(repo), pfs(repo)]), f'name "{repo}" was used more than once'),
        (pps_pb2.Input(), "no input set"),
    ):
        assert create(given) == (UNKNOWN, text)
    code, text = create(pfs(repo, commit=NOBODY))
    assert code is UNKNOWN
    assert text.startswith("input cannot come from a commit; use a branch with head pointing to the")
    assert refusal(client.inspect_pipeline, name)[0] is NOT_FOUND


def test_invalid_specifications(
    place: Place, pfs: MakeInput, client: Client, refusal: Refusal, by_version: ByVersion
) -> None:
    repo = place.repo()
    assert refusal(client.create_pipeline, "a" * 60, transform=TRUE, input=pfs(repo)) == (
        UNKNOWN,
        f'pipeline name "{"a" * 60}" is 9 characters longer than the 51 max',
    )
    assert refusal(client.create_pipeline, "a b", transform=TRUE, input=pfs(repo)) == (
        UNKNOWN,
        "invalid pipeline name: name (a b) invalid: only alphanumeric characters, underscores, and dashes are allowed",
    )
    assert refusal(client.create_pipeline, "a.b", transform=TRUE, input=pfs(repo)) == (
        UNKNOWN,
        'invalid ancestry syntax "a.b", cannot mix . and b characters',
    )
    if by_version(True, False):  # the defaults of 2.12 have a transform
        assert refusal(client.create_pipeline, place.unique("p"), transform=None, input=pfs(repo)) == (
            UNKNOWN,
            "pipeline must specify a transform",
        )
    never = {"transform": TRUE, "input": pfs(repo), "reprocess_spec": "never"}
    code, text = refusal(client.create_pipeline, place.unique("p"), **never)
    assert code is by_version(UNKNOWN, INVALID)
    words = by_version("'until_success' or 'every_job'", '"until_success" or "every_job"')
    assert text.endswith(f"invalid pipeline spec: ReprocessSpec must be one of {words}")


def test_users_cannot_write_a_pipelines_output(
    place: Place, pfs: MakeInput, client: Client, refusal: Refusal, by_version: ByVersion
) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    finished(client, name)
    start = by_version("", "start commit in transaction: ")
    assert refusal(client.start_commit, name, "master") == (
        UNKNOWN,
        f"{start}cannot start a commit on an output branch: default/{name}@master",
    )
    code, text = refusal(client.delete_repo, name)
    assert "cannot delete a repo associated with a pipeline - delete the pipeline instead" in text
    assert code is UNKNOWN


def test_authentication_is_reported_as_not_activated(client: Client, refusal: Refusal) -> None:
    code, text = refusal(client.who_am_i)
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert "the auth service is not activated" in text


@pytest.mark.only_localpachd("Pachyderm's text names no commit if the request named a branch, which this client needs")
def test_a_missing_file_of_a_branch(place: Place, client: Client) -> None:
    repo = place.repo()
    place.put(repo, b="1")
    assert not client.path_exists((repo, "master"), "/a")


def test_missing_files_and_branches(place: Place, client: Client, by_version: ByVersion) -> None:
    repo = place.repo()
    commit = place.put(repo, b="1")
    assert client.path_exists((repo, commit), "/b")
    assert not client.path_exists((repo, commit), "/a")
    unknown = by_version(ValueError, grpc.RpcError)  # the client recognises the texts of 2.7 alone
    with pytest.raises(unknown, match="nonexistent|not found"):
        client.path_exists((repo, "ghost"), "/a")
