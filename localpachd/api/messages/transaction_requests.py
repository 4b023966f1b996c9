"""The requests that a transaction can hold, and the work of each within an atomic step. Stores no request."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localpachd.api.messages import pfs_messages, pps_messages, protojson
from localpachd.api.messages.spec_reader import SpecReader
from localpachd.api.schema.schema import pfs_pb2, pps_pb2, transaction_pb2
from localpachd.errors import InvalidArgument, PachError, prefixed
from localpachd.pfs import branches, commit_removal, commits, repos
from localpachd.pfs.pfs_entities import Commit
from localpachd.pfs.transaction import Transaction
from localpachd.pps import jobs
from localpachd.pps.pps_entities import JobState, SpecText
from localpachd.pps.pps_service import PpsService

RequestResult = pfs_pb2.Commit | bool | None
"""The answer to a request: the commit of a StartCommit, for a DeleteRepo whether the repo existed, else None."""

_ORDERS = ("update", "reprocess", "dryRun")
"""Fields of a CreatePipelineRequest that are not part of the specification."""

_MOST_RESTARTS = (1 << 63) - 1
"""The largest number that the database holds."""


class TransactionRequests:
    """Carries out TransactionRequest messages."""

    def __init__(self, pps: PpsService, specs: SpecReader) -> None:
        self._pps = pps
        self._specs = specs
        self.steps: Mapping[str, Callable[[Transaction, transaction_pb2.TransactionRequest], RequestResult]] = {
            "create_repo": lambda txn, request: _create_repo(txn, request.create_repo),
            "delete_repo": lambda txn, request: _delete_repo(txn, request.delete_repo),
            "start_commit": lambda txn, request: _start_commit(txn, request.start_commit),
            "finish_commit": lambda txn, request: _finish_commit(txn, request.finish_commit),
            "squash_commit_set": lambda txn, request: _squash_commit_set(txn, request.squash_commit_set),
            "create_branch": lambda txn, request: _create_branch(txn, request.create_branch),
            "delete_branch": lambda txn, request: _delete_branch(txn, request.delete_branch),
            "update_job_state": lambda txn, request: _update_job_state(txn, request.update_job_state),
            "create_pipeline": lambda txn, request: self._create_pipeline(txn, request.create_pipeline),
            "stop_job": lambda txn, request: _stop_job(txn, request.stop_job),
            "create_pipeline_v2": lambda txn, request: self._create_pipeline_v2(txn, request.create_pipeline_v2),
        }
        """The work of each request, by the field of TransactionRequest that holds it."""

    def run(self, txn: Transaction, request: transaction_pb2.TransactionRequest) -> RequestResult:
        """Carries out a TransactionRequest and returns its answer."""
        for field, _ in request.ListFields():
            return self.steps[field.name](txn, request)
        raise PachError("unrecognized transaction request type")

    def run_all(self, txn: Transaction, requests: Sequence[transaction_pb2.TransactionRequest]) -> list[RequestResult]:
        """`run` for each request in order; an error names the number of its request."""
        made = []
        for number, request in enumerate(requests, start=1):
            with prefixed(f"error running request {number} of {len(requests)}"):
                made.append(self.run(txn, request))
        return made

    def _create_pipeline(self, txn: Transaction, request: pps_pb2.CreatePipelineRequest) -> None:
        user = {key: value for key, value in protojson.as_json(request).items() if key not in _ORDERS}
        merged = self._specs.merge_now(user, json.dumps(user))
        self._add_pipeline(txn, merged.request(request.update, request.reprocess), merged.written)

    def _create_pipeline_v2(self, txn: Transaction, request: pps_pb2.CreatePipelineTransaction) -> None:
        written = SpecText(request.user_json, request.effective_json)
        self._add_pipeline(txn, protojson.as_mapping(request.create_pipeline_request), written)

    def _add_pipeline(self, txn: Transaction, request: Mapping[str, Any], written: SpecText) -> None:
        if "pipeline" not in request:
            raise PachError("request.Pipeline cannot be nil")
        self._pps.add_pipeline(txn, request, written)


def _create_repo(txn: Transaction, request: pfs_pb2.CreateRepoRequest) -> None:
    repos.create(txn, pfs_messages.to_repo(request.repo), request.description, request.update)


def _delete_repo(txn: Transaction, request: pfs_pb2.DeleteRepoRequest) -> bool:
    if not request.HasField("repo"):
        raise InvalidArgument("no repo specified")
    repo = pfs_messages.to_repo(request.repo)
    there = repos.exists(txn.conn, repo)
    repos.delete_by_user(txn, repo, request.force)
    return there


def _start_commit(txn: Transaction, request: pfs_pb2.StartCommitRequest) -> pfs_pb2.Commit:
    if not request.HasField("branch"):
        raise PachError("branch must be specified")
    branch = pfs_messages.to_branch(request.branch)
    parent = None
    if request.HasField("parent"):
        # The parent is in the branch's repo; pachctl 2.7 misspells that repo ("default/default/repo").
        named = request.parent
        parent = Commit(branch.repo, named.id, named.branch.name or ("" if named.id else branch.name))
    return pfs_messages.commit(commits.start(txn, branch, parent, request.description).commit)


def _finish_commit(txn: Transaction, request: pfs_pb2.FinishCommitRequest) -> None:
    commit = pfs_messages.checked(request.commit, "new")
    commits.finish_by_user(txn, commit, request.error, request.description, request.force)


def _squash_commit_set(txn: Transaction, request: pfs_pb2.SquashCommitSetRequest) -> None:
    commit_removal.squash_set(txn, pfs_messages.to_commit_set(request))


def _create_branch(txn: Transaction, request: pfs_pb2.CreateBranchRequest) -> None:
    branch = pfs_messages.to_branch(request.branch)
    head = pfs_messages.to_commit(request.head) if request.HasField("head") else None
    provenance = [pfs_messages.to_branch(each) for each in request.provenance]
    trigger = pfs_messages.to_trigger(request.trigger) if request.HasField("trigger") else None
    branches.create(txn, branch, head, provenance, trigger)


def _delete_branch(txn: Transaction, request: pfs_pb2.DeleteBranchRequest) -> None:
    branches.delete(txn, pfs_messages.to_branch(request.branch), request.force)


def _update_job_state(txn: Transaction, request: pps_pb2.UpdateJobStateRequest) -> None:
    if request.restart > _MOST_RESTARTS:
        raise InvalidArgument(f"restart: {request.restart} is more than {_MOST_RESTARTS}")
    jobs.update(
        txn,
        pps_messages.to_job(request.job),
        JobState(pps_pb2.JobState.Name(request.state)),
        request.reason,
        request.restart,
        pps_messages.to_counters(request),
        pps_messages.to_stats(request.stats),
    )


def _stop_job(txn: Transaction, request: pps_pb2.StopJobRequest) -> None:
    jobs.stop(txn, pps_messages.to_job(request.job, "Job must be specified"), request.reason)
