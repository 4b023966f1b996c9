"""Transactions, secrets, metadata, logs and the server itself through pachyderm-sdk."""

import pytest
from pachyderm_sdk import Client
from pachyderm_sdk.api import logs, metadata, pfs, pps
from pachyderm_sdk.errors import AuthServiceNotActivated

from tests.parity.sdk.places import Place


def test_the_server_reports_its_version_and_id(client: Client) -> None:
    assert client.get_version().major == 2
    assert client.admin.inspect_cluster().id
    with pytest.raises(AuthServiceNotActivated):
        client.auth.who_am_i()


def test_a_transaction_is_one_commit_set(client: Client, place: Place) -> None:
    left, right = place.branch(), place.branch()
    with client.transaction.transaction() as transaction:
        assert client.transaction.transaction_exists(transaction)
        with client.pfs.commit(branch=left) as first, client.pfs.commit(branch=right) as second:
            pass
    assert first.id == second.id == transaction.id
    assert {each.commit.repo.name for each in first.wait_all()} == {left.repo.name, right.repo.name}
    assert not client.transaction.transaction_exists(transaction)


def test_an_exception_in_a_transaction_leaves_nothing(client: Client, place: Place) -> None:
    repo = pfs.Repo(name=place.unique("r"))
    with pytest.raises(ZeroDivisionError), client.transaction.transaction() as transaction:
        client.pfs.create_repo(repo=repo)
        raise ZeroDivisionError
    assert not client.pfs.repo_exists(repo)
    assert not client.transaction.transaction_exists(transaction)


@pytest.mark.since("2.10")
def test_metadata(client: Client, place: Place) -> None:
    master = place.branch()
    commit = place.put(master, a="1")
    client.metadata.edit_metadata(
        edits=[
            metadata.Edit(repo=master.repo.as_picker(), add_key=metadata.EditAddKey(key="of", value="repo")),
            metadata.Edit(commit=commit.as_picker(), add_key=metadata.EditAddKey(key="of", value="commit")),
        ]
    )
    assert client.pfs.inspect_repo(repo=master.repo).metadata == {"of": "repo"}
    assert client.pfs.inspect_commit(commit=commit).metadata == {"of": "commit"}


@pytest.mark.since("2.10")
def test_logs_of_2_10(client: Client, place: Place) -> None:
    master = place.branch()
    commit = place.put(master, a="1")
    source = pps.Input(pfs=pps.PfsInput(repo=master.repo.name, glob="/*"))
    pipeline = place.pipeline("echo said", source)
    head = client.pfs.inspect_branch(branch=pfs.Branch.from_uri(f"{pipeline.name}@master")).head
    assert head.id != commit.id
    client.pps.inspect_job(job=pps.Job(pipeline=pipeline, id=head.id), wait=True)
    asked = logs.PipelineLogQuery(project="default", pipeline=pipeline.name)
    found = client.logs.get_logs(
        query=logs.LogQuery(user=logs.UserLogQuery(pipeline=asked)), filter=logs.LogFilter(user_logs_only=True)
    )
    assert [each.log.pps_log_message.message for each in found] == ["said"]
