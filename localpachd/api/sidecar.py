"""A spout's own door to the server: the whole API on a loopback port of its own, where it may commit to its output.

Pachyderm knows a spout by the sidecar that it calls (`PPS_PIPELINE_NAME` in the sidecar's environment); so do we.
"""

from collections.abc import Callable

import grpc

from localpachd.api.loopback import LoopbackServers
from localpachd.pfs.service import Pfs
from localpachd.pfs.values import Branch

_CALLS_AT_ONCE = 32


class GrpcSidecars(LoopbackServers):
    """The pps room's Sidecars over gRPC. Thread-safe. `register` is named before anything is opened: it adds the
    services of the API to a server, with the file system that it is given behind them."""

    def __init__(self, pfs: Pfs) -> None:
        super().__init__(_CALLS_AT_ONCE, "spout-call")
        self._pfs = pfs
        self.register: Callable[[grpc.Server, Pfs], None] | None = None

    def open(self, output: Branch) -> int:
        """Serves the API to the spout with this output on a fresh loopback port and returns it."""
        register = self.register
        assert register is not None
        return self.serve(lambda server: register(server, self._pfs.for_spout(output)))
