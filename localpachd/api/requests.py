"""The requests that a transaction can hold, each with what it does in one atomic step. Neither runs nor keeps them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localpachd.api import pfs_messages, pps_messages
from localpachd.api.schema import pps_pb2
from localpachd.api.specs import Specs
from localpachd.errors import InvalidArgument, PachError
from localpachd.pfs import branches, commits, removal, repos
from localpachd.pfs.entities import Commit
from localpachd.pfs.transaction import Transaction
from localpachd.pps import jobs
from localpachd.pps.entities import JobState, Written
from localpachd.pps.service import Pps


class Requests:
    """Does what TransactionRequest messages ask for."""

    def __init__(self, pps: Pps, specs: Specs) -> None:
        self._pps = pps
        self._specs = specs
        self.steps: Mapping[str, Callable[[Transaction, Any], Any]] = {
            "create_repo": _create_repo,
            "delete_repo": _delete_repo,
            "start_commit": _start_commit,
            "finish_commit": _finish_commit,
            "squash_commit_set": _squash_commit_set,
            "create_branch": _create_branch,
            "delete_branch": _delete_branch,
            "update_job_state": _update_job_state,
            "create_pipeline": self._create_pipeline,
            "stop_job": _stop_job,
            "create_pipeline_v2": self._create_pipeline_v2,
        }
        """By the field of TransactionRequest that holds the request."""

    def run(self, txn: Transaction, request: Any) -> Any:
        """Does what a TransactionRequest asks for. Returns what its own call answers with: the Commit of a
        StartCommit, of a DeleteRepo whether the repo was there, else None."""
        for field, asked in request.ListFields():
            return self.steps[field.name](txn, asked)
        raise PachError("unrecognized transaction request type")

    def run_all(self, txn: Transaction, requests: Sequence[Any]) -> list[Any]:
        """`run` for one request after the other; an error names the place of the one that it comes from."""
        made = []
        for number, request in enumerate(requests, start=1):
            try:
                made.append(self.run(txn, request))
            except PachError as error:
                raise type(error)(f"error running request {number} of {len(requests)}: {error}") from error
        return made

    def _create_pipeline(self, txn: Transaction, request: Any) -> None:
        given = pps_pb2.CreatePipelineRequest()
        given.CopyFrom(request)
        for order in ("update", "reprocess", "dry_run"):
            given.ClearField(order)
        merged = self._specs.now(json.dumps(pps_messages.as_json(given)))
        self._create_pipeline_v2(txn, merged.order(request.update, request.reprocess))

    def _create_pipeline_v2(self, txn: Transaction, request: Any) -> None:
        asked = request.create_pipeline_request
        if not asked.HasField("pipeline"):
            raise PachError("request.Pipeline cannot be nil")
        written = Written(request.user_json, request.effective_json)
        self._pps.add_pipeline(txn, pps_messages.as_mapping(asked), written)


def _create_repo(txn: Transaction, request: Any) -> None:
    repos.create(txn, pfs_messages.to_repo(request.repo), request.description, request.update)


def _delete_repo(txn: Transaction, request: Any) -> bool:
    if not request.HasField("repo"):
        raise InvalidArgument("no repo specified")
    repo = pfs_messages.to_repo(request.repo)
    there = repos.exists(txn.conn, repo)
    repos.delete_by_user(txn, repo, request.force)
    return there


def _start_commit(txn: Transaction, request: Any) -> Any:
    if not request.HasField("branch"):
        raise PachError("branch must be specified")
    branch = pfs_messages.to_branch(request.branch)
    parent = None
    if request.HasField("parent"):
        # A parent is of the branch's repo; pachctl 2.7 misspells that ("default/default/repo").
        named = request.parent
        parent = Commit(branch.repo, named.id, named.branch.name or ("" if named.id else branch.name))
    return pfs_messages.commit(commits.start(txn, branch, parent, request.description))


def _finish_commit(txn: Transaction, request: Any) -> None:
    commit = pfs_messages.to_commit(request.commit)
    commits.finish_by_user(txn, commit, request.error, request.description, request.force)


def _squash_commit_set(txn: Transaction, request: Any) -> None:
    removal.squash_set(txn, pfs_messages.to_commit_set(request))


def _create_branch(txn: Transaction, request: Any) -> None:
    branch = pfs_messages.to_branch(request.branch)
    head = pfs_messages.to_commit(request.head) if request.HasField("head") else None
    provenance = [pfs_messages.to_branch(each) for each in request.provenance]
    trigger = pfs_messages.to_trigger(request.trigger) if request.HasField("trigger") else None
    branches.create(txn, branch, head, provenance, trigger)


def _delete_branch(txn: Transaction, request: Any) -> None:
    branches.delete(txn, pfs_messages.to_branch(request.branch), request.force)


def _update_job_state(txn: Transaction, request: Any) -> None:
    jobs.update(
        txn,
        pps_messages.to_job(request.job),
        JobState(pps_pb2.JobState.Name(request.state)),
        request.reason,
        request.restart,
        pps_messages.to_counters(request),
        pps_messages.to_stats(request.stats),
    )


def _stop_job(txn: Transaction, request: Any) -> None:
    jobs.stop(txn, pps_messages.to_job(request.job), request.reason)
