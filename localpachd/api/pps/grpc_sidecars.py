"""A spout's sidecar: the whole API on a loopback port of its own, where the spout may commit to its output.

Pachyderm recognises a spout by the sidecar that it calls (`PPS_PIPELINE_NAME` in the sidecar's environment); so do we.
"""

from collections.abc import Callable, Sequence

import grpc

from localpachd.api.pps.loopback_servers import LoopbackServers
from localpachd.pfs.pfs_entities import Branch
from localpachd.pfs.pfs_service import PfsService

_CALLS_AT_ONCE = 32


class GrpcSidecars(LoopbackServers):
    """The pps room's Sidecars over gRPC. Thread-safe. `register` adds the services of the API to a server, backed by
    the file system that it is given; it is called when a sidecar opens. `guards` are interceptors that may refuse a
    call before any other sees it."""

    def __init__(
        self,
        pfs: PfsService,
        register: Callable[[grpc.Server, PfsService], None],
        guards: Sequence[grpc.ServerInterceptor] = (),
    ) -> None:
        super().__init__(_CALLS_AT_ONCE, "spout-call", guards)
        self._pfs = pfs
        self._register = register

    def open(self, output: Branch) -> int:
        """Serves the API to the spout with this output on a new loopback port and returns the port."""
        return self.serve(lambda server: self._register(server, self._pfs.for_spout(output)))
