"""The calls about jobs and job sets."""

from collections.abc import Callable, Iterator

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import lists, waits
from localpachd.api.messages import pages, pfs_messages, protojson
from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages.times import nanoseconds
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.schema.schema import Empty, pps_pb2, transaction_pb2
from localpachd.errors import PachError
from localpachd.pfs.changes import ChangeFeed, Steps
from localpachd.pps.pps_service import PpsService


class JobCalls:
    """Jobs of `pps_v2.API`."""

    _pps: PpsService
    _write: TransactionalCalls

    @waits
    def InspectJob(self, request: pps_pb2.InspectJobRequest, context: CallContext) -> Steps[pps_pb2.JobInfo]:
        job = messages.to_job(request.job)
        if not request.wait:
            yield messages.job_info(self._pps.jobs.inspect(job), request.details)
            return
        for step in self._pps.jobs.await_end(job, context.is_active):
            yield step if isinstance(step, ChangeFeed) else messages.job_info(step, request.details)

    @lists
    def ListJob(self, request: pps_pb2.ListJobRequest, context: CallContext) -> Iterator[pps_pb2.JobInfo]:
        passes = protojson.message_filter(request.jqFilter)
        in_page = _page(request)
        found = self._pps.jobs.list_all(
            messages.optional_pipeline(request),
            request.history,
            [pfs_messages.to_commit(each) for each in request.input_commit],
            messages.project_names(request),
            request.reverse,
        )
        chosen = (messages.job_info(info, request.details) for info in found if in_page(info.created))
        passing = (message for message in chosen if passes(message))
        yield from pages.first_items(passing, request.number)

    @waits
    def SubscribeJob(self, request: pps_pb2.SubscribeJobRequest, context: CallContext) -> Steps[pps_pb2.JobInfo]:
        pipeline = messages.to_pipeline(request.pipeline)
        for step in self._pps.jobs.subscribe(pipeline, context.is_active):
            yield step if isinstance(step, ChangeFeed) else messages.job_info(step, request.details)

    def StopJob(self, request: pps_pb2.StopJobRequest, context: CallContext) -> Empty:
        self._write(context, transaction_pb2.TransactionRequest(stop_job=request))
        return Empty()

    def UpdateJobState(self, request: pps_pb2.UpdateJobStateRequest, context: CallContext) -> Empty:
        self._write(context, transaction_pb2.TransactionRequest(update_job_state=request))
        return Empty()

    def DeleteJob(self, request: pps_pb2.DeleteJobRequest, context: CallContext) -> Empty:
        self._pps.delete_job(messages.to_job(request.job, "job cannot be nil"))
        return Empty()

    @waits
    def InspectJobSet(self, request: pps_pb2.InspectJobSetRequest, context: CallContext) -> Steps[pps_pb2.JobInfo]:
        for step in self._pps.jobs.inspect_set(request.job_set.id, request.wait, context.is_active):
            yield step if isinstance(step, ChangeFeed) else messages.job_info(step, request.details)

    def ListJobSet(self, request: pps_pb2.ListJobSetRequest, context: CallContext) -> Iterator[pps_pb2.JobSetInfo]:
        if request.number < 0:
            raise PachError("number must be non-negative")
        yield from pages.first_items(self._job_sets(request), request.number)

    def _job_sets(self, request: pps_pb2.ListJobSetRequest) -> Iterator[pps_pb2.JobSetInfo]:
        passes = protojson.message_filter(request.jqFilter)
        in_page = _page(request)
        sets = self._pps.jobs.list_sets(messages.project_names(request))
        for each in reversed(list(sets)) if request.reverse else sets:
            if not in_page(max(info.created for info in each.jobs)):
                continue
            message = messages.job_set_info(each, request.details)
            kept = [job for job in message.jobs if passes(job)]
            if kept:
                del message.jobs[:]
                message.jobs.extend(kept)
                yield message


def _page(request: pps_pb2.ListJobRequest | pps_pb2.ListJobSetRequest) -> Callable[[int], bool]:
    """A test whether a creation time (ns) lies past the request's pagination marker."""
    if not request.HasField("paginationMarker"):
        return lambda created: True
    marker = nanoseconds(request.paginationMarker)
    if request.reverse:
        return lambda created: created > marker
    return lambda created: created < marker
