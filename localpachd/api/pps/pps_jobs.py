"""The calls about jobs, job sets and datums, and the log."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, takewhile

from localpachd.api.calls import cancellation
from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import lists, waits
from localpachd.api.messages import pages, pfs_messages, pps_messages as messages, protojson
from localpachd.api.messages.times import nanoseconds, seconds
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.pps.logs_servicer import LogLines
from localpachd.api.schema.schema import pps_pb2, transaction_pb2
from localpachd.errors import PachError
from localpachd.pfs.changes import ChangeFeed, Steps
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import jobs, log_queries
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_service import PpsService

_AT_ONCE = 100
"""Datums that CreateDatum sends at once if the request gives no number."""


class JobCalls:
    """Jobs, datums and logs of `pps_v2.API`."""

    _pfs: PfsService
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
    def ListJob(self, request: pps_pb2.ListJobRequest) -> Iterator[pps_pb2.JobInfo]:
        passes = protojson.message_filter(request.jqFilter)
        in_page = _page(request)
        found = self._pps.jobs.list_all(
            messages.optional_pipeline(request.pipeline),
            request.history,
            [pfs_messages.to_commit(each) for each in request.input_commit],
            messages.project_names(request.projects),
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

    def StopJob(self, request: pps_pb2.StopJobRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(stop_job=request))

    def UpdateJobState(self, request: pps_pb2.UpdateJobStateRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(update_job_state=request))

    def DeleteJob(self, request: pps_pb2.DeleteJobRequest) -> None:
        job = messages.to_job(request.job, "job cannot be nil")
        self._pfs.transact(lambda txn: jobs.delete(txn, job), frees=True)

    @waits
    def InspectJobSet(self, request: pps_pb2.InspectJobSetRequest, context: CallContext) -> Steps[pps_pb2.JobInfo]:
        for step in self._pps.jobs.inspect_set(request.job_set.id, request.wait, context.is_active):
            yield step if isinstance(step, ChangeFeed) else messages.job_info(step, request.details)

    def ListJobSet(self, request: pps_pb2.ListJobSetRequest) -> Iterator[pps_pb2.JobSetInfo]:
        if request.number < 0:
            raise PachError("number must be non-negative")
        yield from pages.first_items(self._job_sets(request), request.number)

    def _job_sets(self, request: pps_pb2.ListJobSetRequest) -> Iterator[pps_pb2.JobSetInfo]:
        passes = protojson.message_filter(request.jqFilter)
        in_page = _page(request)
        sets = self._pps.jobs.list_sets(messages.project_names(request.projects))
        for each in reversed(list(sets)) if request.reverse else sets:
            if not in_page(max(info.created for info in each.jobs)):
                continue
            message = messages.job_set_info(each, request.details)
            kept = [job for job in message.jobs if passes(job)]
            if kept:
                del message.jobs[:]
                message.jobs.extend(kept)
                yield message

    def ListDatum(self, request: pps_pb2.ListDatumRequest, context: CallContext) -> Iterator[pps_pb2.DatumInfo]:
        if request.HasField("job") and request.HasField("input"):
            raise PachError("cannot specify both job and input")
        if request.reverse and request.number <= 0:
            raise PachError("number must be > 0 when reverse is set")
        marker = request.paginationMarker
        states = set(request.filter.state)
        wanted = (message for message in self._datums(request, context) if not states or message.state in states)
        if request.reverse:
            before = takewhile(lambda message: not marker or message.datum.id < marker, wanted)
            yield from reversed(deque(before, maxlen=request.number))
        else:
            past = (message for message in wanted if message.datum.id > marker)
            yield from pages.first_items(past, request.number)

    def _datums(self, request: pps_pb2.ListDatumRequest, context: CallContext) -> Iterator[pps_pb2.DatumInfo]:
        if request.HasField("input"):
            return self._input_datums(request.input, context)
        job, after = messages.to_job(request.job), "" if request.reverse else request.paginationMarker
        return (messages.datum_info(each, job) for each in self._pps.list_datums(job, after))

    def _input_datums(self, tree: pps_pb2.Input, context: CallContext) -> Iterator[pps_pb2.DatumInfo]:
        found = self._pps.list_input_datums(protojson.as_mapping(tree), partial(cancellation.check, context))
        return map(messages.input_datum, found)

    def CreateDatum(
        self, requests: Iterator[pps_pb2.CreateDatumRequest], context: CallContext
    ) -> Iterator[pps_pb2.DatumInfo]:
        first = next(requests, None)
        if first is None or not first.HasField("start"):
            raise PachError("first message must be a StartCreateDatumRequest message")
        if not first.start.HasField("input"):
            raise PachError("first message must specify an input")
        found = self._input_datums(first.start.input, context)
        number, upcoming = first.start.number, next(found, None)
        while upcoming is not None:
            batch = [upcoming, *islice(found, (number if number > 0 else _AT_ONCE) - 1)]
            upcoming = next(found, None)
            yield from batch
            # Clients wait for the number that they requested or for the end, so the end must come unrequested.
            request = next(requests, None) if upcoming is not None else None
            if request is None:
                return
            if not request.HasField("continue"):
                raise PachError("subsequent messages must be a ContinueCreateDatumRequest message")
            number = getattr(request, "continue").number

    def InspectDatum(self, request: pps_pb2.InspectDatumRequest) -> pps_pb2.DatumInfo:
        if not request.datum.id:
            raise PachError("must specify a datum")
        if not request.datum.HasField("job"):
            raise PachError("must specify a job")
        job = messages.to_job(request.datum.job)
        record, meta = self._pps.inspect_datum(job, request.datum.id)
        return messages.datum_info(record, job, meta)

    def RestartDatum(self, request: pps_pb2.RestartDatumRequest) -> None:
        self._pps.restart_datum(messages.to_job(request.job), tuple(request.data_filters))

    @waits
    def GetLogs(self, request: pps_pb2.GetLogsRequest, context: CallContext) -> Steps[bytes]:
        query = LogQuery(
            pipeline=messages.optional_pipeline(request.pipeline),
            job=messages.named_job(request.job) if request.HasField("job") else None,
            datum=request.datum.id,
            data_filters=tuple(request.data_filters),
            master=request.master,
            follow=request.follow,
            since=seconds(request.since) or None,
            tail=request.tail,
        )
        encoder = LogLines()
        pfs, active = self._pfs, context.is_active
        for step in log_queries.read(pfs.db, pfs.changes, self._pps.server_log, query, active):
            yield step if isinstance(step, ChangeFeed) else encoder.encoded(step)


def _page(request: pps_pb2.ListJobRequest | pps_pb2.ListJobSetRequest) -> Callable[[int], bool]:
    """A test whether a creation time (ns) lies past the request's pagination marker."""
    if not request.HasField("paginationMarker"):
        return lambda created: True
    marker = nanoseconds(request.paginationMarker)
    if request.reverse:
        return lambda created: created > marker
    return lambda created: created < marker
