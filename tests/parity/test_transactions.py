"""Transactions: a request is tried when it is added; all are carried out, as one commit set, when it is finished."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc
from python_pachyderm.proto.v2.transaction import transaction_pb2, transaction_pb2_grpc

from tests.parity.places import (
    EXISTS,
    NOBODY,
    UNKNOWN,
    ByVersion,
    MakeInput,
    Place,
    Refusal,
    branch_of,
    commit_of,
    listed_repos,
    repo_of,
)
from tests.servers import Pachd, Unique


@pytest.fixture
def outside(pachd: Pachd) -> Client:
    """A client outside of every transaction."""
    return pachd.client()


@pytest.fixture
def begun(client: Client) -> Iterator[transaction_pb2.Transaction]:
    """An open transaction that the client has not joined; deleted after the test."""
    transaction = client.start_transaction()
    yield transaction
    if any(info.transaction.id == transaction.id for info in client.list_transaction()):
        client.delete_transaction(transaction)


def at(name: str, commit: str) -> pfs_pb2.Commit:
    return commit_of(name, commit, "master")


def job(pipeline: str, commit: str) -> pps_pb2.Job:
    return pps_pb2.Job(pipeline=pps_pb2.Pipeline(name=pipeline, project=pfs_pb2.Project(name="default")), id=commit)


def repos(client: Client) -> set[str]:
    return {info.repo.name for info in listed_repos(client)}


def request(**fields: Any) -> transaction_pb2.TransactionRequest:
    return transaction_pb2.TransactionRequest(**fields)


def create_repo(name: str) -> transaction_pb2.TransactionRequest:
    return request(create_repo=pfs_pb2.CreateRepoRequest(repo=repo_of(name)))


def within(transaction: transaction_pb2.Transaction) -> tuple[tuple[str, str]]:
    """The metadata of a call that belongs to a transaction."""
    return (("pach-transaction", transaction.id),)


def test_everything_is_done_at_the_end_and_nothing_before(client: Client, outside: Client, place: Place) -> None:
    with client.transaction() as transaction:
        a, b = place.repo("a"), place.repo("b")
        commit = client.start_commit(a, "master")
        client.create_branch(b, "master", provenance=[branch_of(a)])
        assert not {a, b} & repos(outside)
        assert [info.transaction.id for info in outside.list_transaction()].count(transaction.id) == 1
    assert commit.id == transaction.id
    assert {a, b} <= repos(outside)
    assert {info.commit.repo.name for info in outside.inspect_commit(transaction.id)} == {a, b}
    assert transaction.id not in [info.transaction.id for info in outside.list_transaction()]
    client.put_file_bytes(commit, "/x", b"joint")
    client.finish_commit(commit)
    assert place.read(a, "/x") == "joint"


def test_several_inputs_make_one_commit_downstream(client: Client, place: Place) -> None:
    a, b, c = (place.repo(stem) for stem in "abc")
    client.create_branch(c, "master", provenance=[branch_of(a), branch_of(b)])
    before = len(list(client.list_commit(c, all=True)))
    with client.transaction() as transaction:
        started = [client.start_commit(each, "master") for each in (a, b)]
        client.finish_commit(started[0])
    (newest, *older) = client.list_commit(c, all=True)
    assert (newest.commit.id, len(older)) == (transaction.id, before)
    assert {each.repo.name for each in newest.direct_provenance} == {a, b}
    assert {each.id for each in newest.direct_provenance} == {transaction.id}
    assert len({info.started.ToNanoseconds() for info in client.inspect_commit(transaction.id)}) == 1


def test_a_transaction_can_be_inspected(
    client: Client, unique: Unique, begun: transaction_pb2.Transaction, outside: Client
) -> None:
    a = unique("a")
    client.transaction_id = begun.id
    try:
        client.create_repo(a)
        commit = client.start_commit(a, "master")
    finally:
        client.transaction_id = None
    info = outside.inspect_transaction(begun)
    assert info.transaction.id == begun.id and info.HasField("started") and info.version == 2
    assert [each.ListFields()[0][0].name for each in info.requests] == ["create_repo", "start_commit"]
    assert info.requests[0].create_repo.repo == repo_of(a)  # the project is named although the client named none
    assert not info.responses[0].HasField("commit")
    assert info.responses[1].commit.id == commit.id == begun.id
    later = outside.start_transaction()
    listed = [each.transaction.id for each in outside.list_transaction()]
    assert listed.index(later.id) < listed.index(begun.id)
    outside.delete_transaction(later)


def test_unknown_transactions(client: Client, refusal: Refusal, unique: Unique) -> None:
    missing = (grpc.StatusCode.NOT_FOUND, f"transactions {NOBODY} not found")
    assert refusal(client.inspect_transaction, NOBODY) == missing
    assert refusal(client.finish_transaction, NOBODY) == missing
    assert refusal(client.delete_transaction, NOBODY) == missing
    stub = pfs_pb2_grpc.APIStub(client._channel)
    wanted, none = pfs_pb2.CreateRepoRequest(repo=repo_of(unique("r"))), transaction_pb2.Transaction(id=NOBODY)
    assert refusal(stub.CreateRepo, wanted, metadata=within(none)) == missing
    code, text = refusal(stub.CreateRepo, wanted, metadata=within(none) * 2)
    assert (code, text) == (grpc.StatusCode.UNKNOWN, "multiple active transactions found in context")


def test_a_finished_or_deleted_transaction_is_gone(client: Client, refusal: Refusal) -> None:
    for end in (client.finish_transaction, client.delete_transaction):
        transaction = client.start_transaction()
        end(transaction)
        code, _ = refusal(client.inspect_transaction, transaction)
        assert code is grpc.StatusCode.NOT_FOUND


def test_an_empty_transaction_does_nothing(client: Client) -> None:
    transaction = client.start_transaction()
    info = client.finish_transaction(transaction)
    assert info.transaction == transaction
    assert (len(info.requests), len(info.responses)) == (0, 0)


def test_a_failing_request_is_not_added(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    with client.transaction() as transaction:
        a = place.repo("a")
        assert refusal(client.create_repo, a) == (
            grpc.StatusCode.ALREADY_EXISTS,
            f"error running request 2 of 2: repo default/{a} already exists",
        )
        client.start_commit(a, "master")
        code, text = refusal(client.start_commit, a, "other")
        assert code is by_version(UNKNOWN, EXISTS)
        assert text.startswith("error running request 3 of 3: ")
        (*_, said) = text.removeprefix("error running request 3 of 3: ").splitlines()
        assert said.startswith("inconsistent dependencies: cannot create commit from")
        assert len(client.inspect_transaction(transaction).requests) == 2
    assert a in repos(client)


def test_a_request_that_contradicts_earlier_ones_is_not_added(client: Client, place: Place, refusal: Refusal) -> None:
    a, b = place.repo("a"), place.repo("b")
    with client.transaction() as transaction:
        client.create_branch(a, "x")
        code, text = refusal(client.create_branch, b, "x", provenance=[branch_of(a, "y"), branch_of(a, "z")])
        assert code in (UNKNOWN, EXISTS) and text  # two branches of one repo, or two commits of one id
        assert len(client.inspect_transaction(transaction).requests) == 1
    assert [info.branch.name for info in client.list_branch(a)] == ["x"]
    assert list(client.list_branch(b)) == []


def test_a_transaction_that_cannot_be_finished_stays(
    client: Client, place: Place, outside: Client, refusal: Refusal
) -> None:
    client.transaction_id = client.start_transaction().id
    try:
        a = place.repo("a")
        outside.create_repo(a)
        other = place.unique("b")
        code, text = refusal(client.create_repo, other)
        assert (code, text) == (
            grpc.StatusCode.ALREADY_EXISTS,
            f"error running request 1 of 2: repo default/{a} already exists",
        )
        code, text = refusal(outside.finish_transaction, client.transaction_id)
        assert text == f"error running request 1 of 1: repo default/{a} already exists"
        outside.delete_repo(a)
        info = outside.finish_transaction(client.transaction_id)
    finally:
        client.transaction_id = None
    assert len(info.responses) == 1
    assert a in repos(outside) and other not in repos(outside)


def test_an_exception_in_the_block_rolls_back(client: Client, place: Place, refusal: Refusal) -> None:
    with pytest.raises(ZeroDivisionError), client.transaction() as transaction:
        a = place.repo("a")
        raise ZeroDivisionError
    assert a not in repos(client)
    assert refusal(client.inspect_transaction, transaction)[0] is grpc.StatusCode.NOT_FOUND


def test_every_kind_of_request_of_pfs(client: Client, place: Place, outside: Client) -> None:
    a, b, doomed = place.repo("a"), place.repo("b"), place.repo("doomed")
    first, second, third = (place.put(a, x=each) for each in "123")
    list(client.wait_commit(third))
    client.create_branch(a, "old", head_commit=at(a, first))
    client.create_branch(a, "gone", head_commit=at(a, first))
    with client.transaction() as transaction:
        client.create_repo(b, description="better", update=True)
        client.delete_repo(doomed)
        client.squash_commit(second)
        client.delete_branch(a, "gone")
        client.create_branch(a, "old", head_commit=at(a, third))
        commit = client.start_commit(a, "master", description="of a transaction")
        client.finish_commit(commit)
        assert len(outside.inspect_transaction(transaction).requests) == 7
        assert [info.commit.id for info in outside.list_commit(a)] == [third, second, first]
        assert outside.inspect_repo(b).description == ""
    assert doomed not in repos(client)
    assert client.inspect_repo(b).description == "better"
    heads = {info.branch.name: info.head.id for info in client.list_branch(a)}
    assert heads == {"old": third, "master": transaction.id}
    assert [info.commit.id for info in client.list_commit(a)] == [transaction.id, third, first]
    (info,) = client.inspect_commit((a, "master"), commit_state=pfs_pb2.FINISHED)
    assert info.description == "of a transaction" and info.HasField("finished")


def test_other_calls_ignore_transactions(
    client: Client, place: Place, begun: transaction_pb2.Transaction, stub: pfs_pb2_grpc.APIStub
) -> None:
    a = place.repo("a")
    commit = commit_of(a, branch="master")
    changes = [
        pfs_pb2.ModifyFileRequest(set_commit=commit),
        pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path="/x", raw={"value": b"now"})),
    ]
    stub.ModifyFile(iter(changes), metadata=within(begun))
    assert place.read(a, "/x") == "now"
    assert stub.InspectRepo(pfs_pb2.InspectRepoRequest(repo=repo_of(a)), metadata=within(begun)).repo == repo_of(a)
    assert len(client.inspect_transaction(begun).requests) == 0


def test_several_clients_add_to_one_transaction(
    pachd: Pachd, client: Client, unique: Unique, begun: transaction_pb2.Transaction
) -> None:
    names = [unique("r") for _ in range(4)]

    def add(name: str) -> None:
        own = pachd.client()
        own.transaction_id = begun.id
        own.create_repo(name)

    with ThreadPoolExecutor() as pool:
        list(pool.map(add, names))
    info = client.inspect_transaction(begun)
    assert {each.create_repo.repo.name for each in info.requests} == set(names)
    assert (info.version, len(info.responses)) == (4, 4)


def test_pipelines_begin_in_one_step(client: Client, place: Place, pfs: MakeInput, outside: Client) -> None:
    a = place.repo("a")
    place.put(a, x="one")
    with client.transaction() as transaction:
        upper = place.pipeline(f"tr a-z A-Z < /pfs/{a}/x > /pfs/out/x", input=pfs(a))
        twice = place.pipeline(f"cat /pfs/{upper}/x /pfs/{upper}/x > /pfs/out/x", input=pfs(upper))
        assert upper not in repos(outside)
    assert place.job(upper, transaction.id).state == pps_pb2.JOB_SUCCESS
    assert place.job(twice, transaction.id).state == pps_pb2.JOB_SUCCESS
    assert place.read(twice, "/x") == "ONEONE"
    assert [len(list(client.list_job(each))) for each in (upper, twice)] == [1, 1]


def test_a_new_version_and_new_input_are_one_job(client: Client, place: Place, pfs: MakeInput) -> None:
    a = place.repo("a")
    place.put(a, x="one")
    name = place.pipeline(f"cp /pfs/{a}/x /pfs/out/", input=pfs(a))
    with client.transaction() as transaction:
        commit = client.start_commit(a, "master")
        place.pipeline(f"tr a-z A-Z < /pfs/{a}/x > /pfs/out/x", name, input=pfs(a))
    client.put_file_bytes(commit, "/x", b"two")
    client.finish_commit(commit)
    done = place.job(name, transaction.id)
    assert (done.state, done.pipeline_version) == (pps_pb2.JOB_SUCCESS, 2)
    assert place.read(name, "/x", transaction.id) == "TWO"
    assert [info.job.id for info in client.list_job(name)] == [transaction.id]


@pytest.mark.only_localpachd("in Pachyderm the output's commit keeps the input as it was before the transaction")
def test_a_pipeline_and_its_first_input_are_one_job(client: Client, place: Place, pfs: MakeInput) -> None:
    a = place.repo("a")
    place.put(a, x="one")
    with client.transaction() as transaction:
        name = place.pipeline(f"cp /pfs/{a}/x /pfs/out/", input=pfs(a))
        commit = client.start_commit(a, "master")
    client.put_file_bytes(commit, "/x", b"two")
    client.finish_commit(commit)
    assert place.job(name, transaction.id).state == pps_pb2.JOB_SUCCESS
    assert place.read(name, "/x") == "two"


def test_jobs_are_stopped_when_the_transaction_is_finished(client: Client, place: Place, pfs: MakeInput) -> None:
    a = place.repo("a")
    name = place.pipeline("sleep 60", input=pfs(a))
    commit = place.put(a, x="1")
    with client.transaction():
        client.stop_job(commit, pipeline_name=name, reason="enough")
        (info,) = client.inspect_job(commit, pipeline_name=name)
        assert info.state not in (pps_pb2.JOB_KILLED, pps_pb2.JOB_SUCCESS)
    info = place.job(name, commit)
    assert (info.state, info.reason) == (pps_pb2.JOB_KILLED, "enough")


def test_a_job_gets_the_state_that_a_worker_gives_it(
    client: Client, place: Place, pfs: MakeInput, refusal: Refusal
) -> None:
    a = place.repo("a")
    name = place.pipeline("sleep 60", input=pfs(a))
    commit = place.put(a, x="1")
    update = pps_pb2.UpdateJobStateRequest(
        job=job(name, commit), state=pps_pb2.JOB_FAILURE, reason="said so", restart=3, data_processed=2, data_total=7
    )
    stub = pps_pb2_grpc.APIStub(client._channel)
    output = at(name, commit)
    client.batch_transaction(
        [
            request(finish_commit=pfs_pb2.FinishCommitRequest(commit=output, error="said so", force=True)),
            request(update_job_state=update),
        ]
    )
    info = place.job(name, commit)
    assert (info.state, info.reason, info.restart) == (pps_pb2.JOB_FAILURE, "said so", 3)
    assert (info.data_processed, info.data_total) == (2, 7)
    code, text = refusal(stub.UpdateJobState, update)
    assert code is grpc.StatusCode.UNKNOWN and text.endswith("has already finished")
    update.job.id = NOBODY
    assert refusal(stub.UpdateJobState, update)[0] is grpc.StatusCode.NOT_FOUND


def test_a_batch_is_done_at_once_and_as_a_whole(client: Client, place: Place, refusal: Refusal) -> None:
    a, b = place.unique("a"), place.unique("b")
    start = request(start_commit=pfs_pb2.StartCommitRequest(branch=branch_of(a)))
    code, text = refusal(client.batch_transaction, [create_repo(a), start, create_repo(b), create_repo(a)])
    assert (code, text) == (
        grpc.StatusCode.ALREADY_EXISTS,
        f"error running request 4 of 4: repo default/{a} already exists",
    )
    assert not {a, b} & repos(client)
    info = client.batch_transaction([create_repo(a), start])
    assert (len(info.requests), len(info.responses)) == (2, 2)
    assert info.responses[1].commit.id == info.transaction.id
    assert client.inspect_branch(a, "master").head.id == info.transaction.id
    assert info.transaction.id not in [each.transaction.id for each in client.list_transaction()]
    client.delete_repo(a, force=True)


@pytest.mark.crashes_pachd("a batch whose repos name no project")
def test_a_batch_without_projects_is_about_the_default_one(client: Client, place: Place) -> None:
    a = place.repo("a")
    branch = pfs_pb2.Branch(name="master", repo=pfs_pb2.Repo(name=a, type="user"))
    info = client.batch_transaction([request(start_commit=pfs_pb2.StartCommitRequest(branch=branch))])
    assert client.inspect_branch(a, "master").head.id == info.transaction.id


def test_an_empty_request(client: Client, refusal: Refusal) -> None:
    assert refusal(client.batch_transaction, [request()]) == (
        grpc.StatusCode.UNKNOWN,
        "error running request 1 of 1: unrecognized transaction request type",
    )
    stub = transaction_pb2_grpc.APIStub(client._channel)
    assert len(stub.BatchTransaction(transaction_pb2.BatchTransactionRequest()).responses) == 0


def test_a_trigger_fires_when_the_transaction_is_finished(client: Client, place: Place) -> None:
    a = place.repo("a")
    place.put(a, x="1")
    client.create_branch(a, "live", trigger=pfs_pb2.Trigger(branch="master", commits=1))
    with client.transaction() as transaction:
        commit = client.start_commit(a, "master")
        client.finish_commit(commit)
    list(client.inspect_commit((a, "master"), commit_state=pfs_pb2.FINISHED))
    assert client.inspect_branch(a, "live").head.id == transaction.id
