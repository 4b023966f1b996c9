"""The calls about datums, and the log."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice, takewhile

from localpachd.api.calls import cancellation
from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import waits
from localpachd.api.messages import pages, protojson
from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages.times import seconds
from localpachd.api.pps.log_lines import LogLines
from localpachd.api.schema.schema import Empty, pps_pb2
from localpachd.errors import PachError
from localpachd.pfs.changes import ChangeFeed, Steps
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_entities import DatumInfo
from localpachd.pps.pps_service import PpsService

_AT_ONCE = 100
"""Datums that CreateDatum sends at once if the request gives no number."""


class DatumCalls:
    """Datums and logs of `pps_v2.API`."""

    _pps: PpsService

    def ListDatum(self, request: pps_pb2.ListDatumRequest, context: CallContext) -> Iterator[pps_pb2.DatumInfo]:
        if request.HasField("job") and request.HasField("input"):
            raise PachError("cannot specify both job and input")
        if request.reverse and request.number <= 0:
            raise PachError("number must be > 0 when reverse is set")
        marker = request.paginationMarker
        states = set(request.filter.state)
        wanted = (
            message
            for message in map(messages.datum_info, self._datums(request, context))
            if not states or message.state in states
        )
        if request.reverse:
            before = takewhile(lambda message: not marker or message.datum.id < marker, wanted)
            yield from reversed(deque(before, maxlen=request.number))
        else:
            past = (message for message in wanted if message.datum.id > marker)
            yield from pages.first_items(past, request.number)

    def _datums(self, request: pps_pb2.ListDatumRequest, context: CallContext) -> Iterator[DatumInfo]:
        if request.HasField("input"):
            return self._pps.list_input_datums(
                protojson.as_mapping(request.input), partial(cancellation.check, context)
            )
        after = "" if request.reverse else request.paginationMarker
        return self._pps.list_datums(messages.to_job(request.job), after)

    def CreateDatum(
        self, requests: Iterator[pps_pb2.CreateDatumRequest], context: CallContext
    ) -> Iterator[pps_pb2.DatumInfo]:
        first = next(requests, None)
        if first is None or not first.HasField("start"):
            raise PachError("first message must be a StartCreateDatumRequest message")
        if not first.start.HasField("input"):
            raise PachError("first message must specify an input")
        found = self._pps.list_input_datums(
            protojson.as_mapping(first.start.input), partial(cancellation.check, context)
        )
        number, upcoming = first.start.number, next(found, None)
        while upcoming is not None:
            batch = [upcoming, *islice(found, (number if number > 0 else _AT_ONCE) - 1)]
            upcoming = next(found, None)
            yield from map(messages.datum_info, batch)
            # Clients wait for the number that they requested or for the end, so the end must come unrequested.
            request = next(requests, None) if upcoming is not None else None
            if request is None:
                return
            if not request.HasField("continue"):
                raise PachError("subsequent messages must be a ContinueCreateDatumRequest message")
            number = getattr(request, "continue").number

    def InspectDatum(self, request: pps_pb2.InspectDatumRequest, context: CallContext) -> pps_pb2.DatumInfo:
        if not request.datum.id:
            raise PachError("must specify a datum")
        if not request.datum.HasField("job"):
            raise PachError("must specify a job")
        return messages.datum_info(self._pps.inspect_datum(messages.to_job(request.datum.job), request.datum.id))

    def RestartDatum(self, request: pps_pb2.RestartDatumRequest, context: CallContext) -> Empty:
        self._pps.restart_datum(messages.to_job(request.job), tuple(request.data_filters))
        return Empty()

    @waits
    def GetLogs(self, request: pps_pb2.GetLogsRequest, context: CallContext) -> Steps[bytes]:
        query = LogQuery(
            pipeline=messages.optional_pipeline(request),
            job=messages.named_job(request.job) if request.HasField("job") else None,
            datum=request.datum.id,
            data_filters=tuple(request.data_filters),
            master=request.master,
            follow=request.follow,
            since=seconds(request.since) or None,
            tail=request.tail,
        )
        encoder = LogLines()
        for step in self._pps.logs(query, context.is_active):
            yield step if isinstance(step, ChangeFeed) else encoder.encoded(step)
