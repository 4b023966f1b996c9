"""The program: reads the command line and runs the server until a signal stops it. Builds nothing itself."""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from localpachd import allocator, maintenance, systemd
from localpachd.api.server_addresses import AccessProtection
from localpachd.errors import PachError
from localpachd.server import Server, ServerOptions
from localpachd.storage.url_reach import IpNetwork, network
from localpachd.systemd import SystemdNotifier
from speclang import quantities

_LAST_PORT = 65535
_UNIT = "unit"
_LONGEST_STOP = 8.0
"""Seconds that an orderly end may take."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT, does the maintenance that is asked for, or prints a unit of systemd; returns the
    exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in maintenance.COMMANDS:
        return maintenance.main(arguments)
    if arguments and arguments[0] == _UNIT:
        print(systemd.unit(_options(arguments[1:]).root, arguments[1:]), end="")
        return 0
    options = _options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = _Stop()
    allocator.return_freed_memory()
    try:
        server = Server(options)
        server.start()
    except (PachError, OSError, ValueError) as error:
        print(f"localpachd: {error}", file=sys.stderr)
        return 1
    # In one piece: `lookalike up` reads the lines that it needs, and leaves.
    metrics = f"\nlocalpachd: metrics at {server.metrics_address}" if server.metrics_address else ""
    print(f"localpachd: listening on {server.address}{metrics}", flush=True)
    manager = SystemdNotifier()
    manager.ready(f"listening on {server.address}", server.check)
    stop.wait()
    manager.stopping()
    server.stop()
    return 0


class _Stop:
    """SIGTERM and SIGINT, as noticed by a thread of its own: the main thread may be busy with the start, or wait for a
    disk. During the start, and when an orderly end takes too long, the process ends as by a cut of power, which loses
    nothing."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._started = threading.Event()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._watch, args=(reader,), name="signals", daemon=True).start()

    def wait(self) -> None:
        """Blocks until a signal has come; then a second one ends the process at once."""
        self._started.set()
        self._told.wait()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    def _watch(self, reader: int) -> None:
        os.read(reader, 1)
        self._told.set()
        if self._started.is_set():
            time.sleep(_LONGEST_STOP)
            logging.getLogger(__name__).warning("stopping takes more than %.0f s: ending at once", _LONGEST_STOP)
        os._exit(0)


def _options(arguments: Sequence[str] | None) -> ServerOptions:
    parser = argparse.ArgumentParser(
        prog="localpachd",
        description="An embedded server for Pachyderm's API on one machine. With backup, restore, fsck or retention as "
        "the first argument: maintenance of its root (python -m localpachd backup --help); with unit: the unit of "
        "systemd that runs it with these options.",
    )
    parser.add_argument("--root", type=_root, required=True, help="directory for all state; created if missing")
    parser.add_argument("--port", type=_port, default=30650, help="port to listen on; 0 picks a free one")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; another one than the loopback needs --tls-cert, --tls-key and --token-file",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate (PEM) of the server, for TLS")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key (PEM, without a password)")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the token that clients must send, as Pachyderm's authn-token",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen on any address without them: all who can reach it may read, change and run everything",
    )
    parser.add_argument(
        "--metrics-port",
        type=_port,
        metavar="PORT",
        help="show metrics for Prometheus over HTTP on this port; 0 picks a free one",
    )
    parser.add_argument(
        "--metrics-host",
        default="127.0.0.1",
        metavar="HOST",
        help="address of that port; another one than the loopback needs --tls-cert, --tls-key and a token",
    )
    parser.add_argument(
        "--metrics-token-file",
        type=Path,
        metavar="FILE",
        help="file with a token that opens the metrics and nothing else; without it that of --token-file",
    )
    parser.add_argument(
        "--file-urls",
        type=_directory,
        action="append",
        default=[],
        metavar="DIR",
        help="a directory whose files URLs may read and write (file:///DIR/...); without one they are refused",
    )
    parser.add_argument(
        "--url-network",
        dest="url_networks",
        type=_network,
        action="append",
        default=[],
        metavar="CIDR",
        help="a network that URLs may lead to though it is not public, such as 10.1.0.0/16",
    )
    parser.add_argument(
        "--worker-sees",
        type=_directory,
        action="append",
        default=[],
        metavar="DIR",
        help="a directory below /tmp that workers see in theirs; each has a /tmp of its own",
    )
    parser.add_argument(
        "--pass-env",
        action="append",
        default=[],
        metavar="NAME",
        help="a variable of the server's environment that workers get, beside PATH, HOME and the like",
    )
    parser.add_argument(
        "--run-as", default="", metavar="USER", help="the user of workers' processes, if the server is root"
    )
    parser.add_argument("--gpus", default="auto", help="number of GPUs to lease to pipelines, or auto")
    parser.add_argument(
        "--strict-gpus", action="store_true", help="make GPU pipelines wait if there is no GPU, as on a cluster"
    )
    parser.add_argument(
        "--runner",
        choices=("process", "docker"),
        default="process",
        help="run workers as processes of this machine, or in containers of transform.image",
    )
    parser.add_argument(
        "--lenient-specs",
        action="store_true",
        help="ignore unknown fields of pipeline specifications instead of refusing them",
    )
    parser.add_argument(
        "--log-days", type=_not_negative, default=30, help="days to keep lines of pipelines' logs; 0: for ever"
    )
    parser.add_argument(
        "--log-lines", type=_not_negative, default=2_000_000, help="number of lines of pipelines' logs to keep; 0: all"
    )
    parser.add_argument(
        "--retention",
        type=_not_negative,
        default=0,
        metavar="DAYS",
        help="squash commits that nothing needs after so many days; 0: keep all (see python -m localpachd retention)",
    )
    parser.add_argument(
        "--quota",
        type=_size,
        default=0,
        metavar="SIZE",
        help="the most bytes to store, such as 50G or 2Ti; puts and jobs that exceed it fail",
    )
    parser.add_argument(
        "--faithful",
        type=_milliseconds,
        nargs="?",
        const="100",
        default=0.0,
        metavar="MILLISECONDS",
        help="for tests: take random times of up to so many milliseconds (100) for what is not instant on a cluster, "
        "and fail where pachd crashes",
    )
    given = vars(parser.parse_args(arguments))
    protection = AccessProtection(*(given.pop(each) for each in ("token_file", "tls_cert", "tls_key", "insecure")))
    return ServerOptions(**given, protection=protection)


def _root(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the name of a directory is missing")
    root = Path(text).absolute()
    if root.exists() and not root.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return root


def _directory(text: str) -> Path:
    directory = Path(text).absolute()
    if not directory.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return directory


def _network(text: str) -> IpNetwork:
    try:
        return network(text)
    except PachError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _port(text: str) -> int:
    # gRPC would listen on the remainder.
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a valid port: use a number from 0 to {_LAST_PORT}")
    return int(text)


def _milliseconds(text: str) -> float:
    """A positive number of milliseconds, in seconds."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of milliseconds above 0")
    return int(text) / 1000


def _size(text: str) -> int:
    size = quantities.parse(text)
    if size is None or size < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of bytes, such as 50G or 2Ti")
    return int(size)


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 0 or more")
    return int(text)
