"""The `pps_v2.API` service: its calls by noun, put together."""

from localpachd.api.pps_datums import DatumCalls
from localpachd.api.pps_jobs import JobCalls
from localpachd.api.pps_pipelines import PipelineCalls
from localpachd.pfs.changes import Changes
from localpachd.pps.service import Pps


class PpsServicer(PipelineCalls, JobCalls, DatumCalls):
    """Serves pipelines, jobs, datums and logs; `changes` wakes those who wait for a client that has gone."""

    def __init__(self, pps: Pps, changes: Changes) -> None:
        self._pps = pps
        self._changes = changes
