"""The options of a server, each with its form on the command line. Starts nothing."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from localpachd.api.pachyderm_version import COMPATIBLE
from localpachd.api.server_addresses import LOOPBACK, AccessProtection
from localpachd.errors import PachError
from localpachd.storage.url_reach import IpNetwork, network
from speclang import quantities

_LAST_PORT = 65535


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


def _option(default: Any, text: str, flag: str = "", **form: Any) -> Any:
    """A field with its help and further arguments of `add_argument`; `flag` where it is not the field's name."""
    return field(default=default, metadata={"flag": flag, "form": {"help": text, **form}})


def _several(text: str, flag: str = "", **form: Any) -> Any:
    return _option((), text, flag, action="append", **form)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server. `protection` is that against strangers. `faithful` is the longest delay in seconds, 0 to
    do all at once and to forgive what pachd crashes on."""

    root: Path
    host: str = _option(
        LOOPBACK, "address to listen on; another one than the loopback needs --tls-cert, --tls-key and --token-file"
    )
    port: int = _option(30650, "port to listen on; 0 picks a free one", type=_port)
    protection: AccessProtection = field(default_factory=AccessProtection)
    metrics_port: int | None = _option(
        None, "show metrics for Prometheus over HTTP on this port; 0 picks a free one", type=_port, metavar="PORT"
    )
    metrics_host: str = _option(
        LOOPBACK,
        "address of that port; another one than the loopback needs --tls-cert, --tls-key and a token",
        metavar="HOST",
    )
    metrics_token_file: Path | None = _option(  # noqa: RUF009 (a field, as all here)
        None,
        "file with a token that opens the metrics and nothing else; without it that of --token-file",
        type=Path,
        metavar="FILE",
    )
    file_urls: tuple[Path, ...] = _several(
        "a directory whose files URLs may read and write (file:///DIR/...); without one they are refused",
        type=_directory,
        metavar="DIR",
    )
    url_networks: tuple[IpNetwork, ...] = _several(
        "a network that URLs may lead to though it is not public, such as 10.1.0.0/16",
        "--url-network",
        type=_network,
        metavar="CIDR",
    )
    worker_sees: tuple[Path, ...] = _several(
        "a directory below /tmp that workers see in theirs; each has a /tmp of its own", type=_directory, metavar="DIR"
    )
    pass_env: tuple[str, ...] = _several(
        "a variable of the server's environment that workers get, beside PATH, HOME and the like", metavar="NAME"
    )
    run_as: str = _option("", "the user of workers' processes, if the server is root", metavar="USER")
    gpus: str = _option("auto", "number of GPUs to lease to pipelines, or auto")
    strict_gpus: bool = _option(
        False, "make GPU pipelines wait if there is no GPU, as on a cluster", action="store_true"
    )
    runner: Literal["process", "docker"] = _option(
        "process",
        "run workers as processes of this machine, or in containers of transform.image",
        choices=("process", "docker"),
    )
    compatible: str = _option(
        "2.7", "the version of Pachyderm whose answers to give where they differ", choices=tuple(COMPATIBLE)
    )
    lenient_specs: bool = _option(
        False, "ignore unknown fields of pipeline specifications instead of refusing them", action="store_true"
    )
    log_days: int = _option(30, "days to keep lines of pipelines' logs; 0: for ever", type=_not_negative)
    log_lines: int = _option(2_000_000, "number of lines of pipelines' logs to keep; 0: all", type=_not_negative)
    retention: int = _option(
        0,
        "squash commits that nothing needs after so many days; 0: keep all (see python -m localpachd retention)",
        type=_not_negative,
        metavar="DAYS",
    )
    quota: int = _option(
        0, "the most bytes to store, such as 50G or 2Ti; puts and jobs that exceed it fail", type=_size, metavar="SIZE"
    )
    faithful: float = _option(
        0.0,
        "for tests: take random times of up to so many milliseconds (100) for what is not instant on a cluster, and "
        "fail where pachd crashes",
        type=_milliseconds,
        nargs="?",
        const="100",
        metavar="MILLISECONDS",
    )


def parse(arguments: Sequence[str]) -> ServerOptions:
    """The options of a command line; ends the program for one that is not valid."""
    parser = argparse.ArgumentParser(
        prog="localpachd",
        description="An embedded server for Pachyderm's API on one machine. With backup, restore, fsck or retention as "
        "the first argument: maintenance of its root (python -m localpachd backup --help); with unit: the unit of "
        "systemd that runs it with these options.",
    )
    parser.add_argument("--root", type=_root, required=True, help="directory for all state; created if missing")
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
    for each in fields(ServerOptions):
        if each.metadata:
            flag = each.metadata["flag"] or f"--{each.name.replace('_', '-')}"
            default = [] if each.default == () else each.default  # a list, for "append"
            parser.add_argument(flag, dest=each.name, default=default, **each.metadata["form"])
    given = vars(parser.parse_args(arguments))
    protection = AccessProtection(*(given.pop(each) for each in ("token_file", "tls_cert", "tls_key", "insecure")))
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return ServerOptions(**values, protection=protection)
