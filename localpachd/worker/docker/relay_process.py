"""The relay of a service in a container, run beside it and, if the container has a network of its own, inside that."""

import select
import subprocess

from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.service_network import ServiceNetwork

_PATIENCE = 30.0
"""Seconds that the relay may take to start."""


class RelayProcess:
    """The relay of `network`, for the container whose process 1 is `pid` here. It ends with the thread that made it.

    Raises EnvironmentProblem when it does not start.
    """

    def __init__(self, network: ServiceNetwork, pid: int) -> None:
        enter = ("nsenter", f"--net=/proc/{pid}/ns/net", "--") if network.own else ()
        self._process = subprocess.Popen(
            ("setpriv", "--pdeathsig", "KILL", "--", *enter, *network.relay),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=network.inherited,
        )
        assert self._process.stdout is not None and self._process.stderr is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        if not ready or not self._process.stdout.read(1):
            self._process.kill()
            said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            self.close()
            reason = said[-1] if said else "its relay does not start"
            raise EnvironmentProblem(f"the service cannot be reached: {reason}")

    def close(self) -> None:
        """Ends the relay."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
