"""The command that serves the search over HTTP, here or as a pipeline."""

import contextlib
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import grpc
import typer

from pipelines.client import services
from pipelines.client.choosing import target
from pipelines.client.connection import Connection
from pipelines.client.failures import cause, explain
from pipelines.client.moments import commit_at
from pipelines.client.outages import outlasting
from pipelines.commands import interrupts, servicing
from pipelines.commands.app import App
from pipelines.commands.connecting import connected_to, connected_to_write
from pipelines.commands.options import AddressOption, path
from pipelines.commands.terminal import console, say
from pipelines.errors import LookalikeError
from pipelines.explaining.timetravel import past
from pipelines.explaining.tracing import pages, walk
from stages.contract import StageError
from stages.filecache import FileCache, default_place
from stages.knn.settings import settings
from stages.serving import configuration, program
from stages.serving.configuration import Configuration
from stages.serving.pachyderm import Address

app = App()

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
"""Variables that name the screen of this user."""


@app.command(
    examples=(
        "lookalike serve",
        "lookalike serve --port 0 --no-browser",
        "lookalike serve --at 2026-11-01",
        "lookalike serve --token-file token --behind-proxy pictures.example.org",
        "lookalike serve --deploy",
    ),
)
def serve(
    at: Annotated[
        str,
        typer.Option(
            metavar="COMMIT|DATE", help="The library of then: a commit's id, an ancestor, or a date [default: follow]."
        ),
    ] = "",
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help=f"The port of 127.0.0.1, 0 for a free one; of a deployed service, that of the nodes "
            f"[default: {configuration.PORT}].",
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address to listen on, in place of --port.")
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=path, help="The file with the token that requests must have."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", parser=path, help="The certificate for TLS, in PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", parser=path, help="Its key, in PEM.")] = None,
    behind_proxy: Annotated[
        str, typer.Option(metavar="HOST", help="The name of the proxy with TLS in front of the service.")
    ] = "",
    fetch_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="A network from which pictures are fetched by URL though it is not public, such as 10.1.0.0/16; "
            "repeatable.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, where there is one.")
    ] = True,
    deploy: Annotated[
        bool, typer.Option("--deploy", help="Deploy the service as a pipeline in place of running it here.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="Delete the deployed service, its token and its secret.")] = False,
    address: AddressOption = "",
) -> None:
    """Search the library in the browser, over HTTP and from Python, until Ctrl-C. Follows new commits.

    Only this machine can ask, unless --listen or --behind-proxy say otherwise."""
    if deploy and off:
        raise typer.BadParameter("--deploy and --off exclude each other")
    if listen and port is not None:
        raise typer.BadParameter("--listen names the port, too: leave --port out")
    if off:
        servicing.off(connected_to_write(address))
        return
    if deploy:
        _refuse({"--at": at, "--listen": listen, "--fetch-from": fetch_from})
        with _explained():
            servicing.deploy(
                connected_to_write(address), servicing.Wanted(port, token_file, tls_cert, tls_key, behind_proxy)
            )
        return
    server = target(address)
    with _explained():
        default = configuration.PORT if port is None else port
        host, number = configuration.listening(listen) if listen else (configuration.LOOPBACK, default)
        wanted = configuration.check(
            Configuration(
                server=Address(server.address, server.project, server.token, server.root_certificates),
                host=host,
                port=number,
                token=configuration.read_token(token_file) if token_file else "",
                certificate=tls_cert,
                key=tls_key,
                proxy=behind_proxy,
                settings=settings(os.environ),
                fetched=configuration.networks(" ".join(fetch_from or ())),
            )
        )
    connection = connected_to(server)
    if at:
        wanted = replace(wanted, at=_moment(connection, at))
    _serve(connection, wanted, token_file, browser)


def _refuse(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise typer.BadParameter(f"{name} is for a service that runs here, not for --deploy")


def _moment(connection: Connection, at: str) -> str:
    """The commit set whose library stood at the moment that `at` means."""
    commit = past.answering(connection, outlasting(connection, partial(commit_at, connection, at)))
    say(f"serving the library of commit {commit}, whatever comes later")
    return commit


def _serve(connection: Connection, wanted: Configuration, token_file: Path | None, browser: bool) -> None:
    interrupts.explain("the service has ended")
    with contextlib.ExitStack() as until_the_end:

        def announce(url: str) -> None:
            say(f"lookalike serve: {url}")
            if wanted.proxy:
                say(f"through the proxy: https://{wanted.proxy}")
            found = services.register(
                connection, url, token_file=token_file, certificate=wanted.certificate, at=wanted.at
            )
            if not until_the_end.enter_context(found):
                say("other commands will not find it: its address cannot be written to the directory of this user")
            if browser and _has_screen(os.environ):
                threading.Thread(target=webbrowser.open, args=(url,), name="browser", daemon=True).start()

        with _explained():
            role = program.Role(tracer=_Tracer(connection))
            heard = program.run(wanted, FileCache(default_place()), os.environ, announce, say, role)
    if heard == program.INTERRUPTED:
        signal.raise_signal(signal.SIGINT)  # ends it as it ends every command


class _Tracer:
    """Makes the pages of traces as `lookalike trace` does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def page(self, id: str, path: str, at: str) -> str:
        """See stages.serving.tracing. Raises LookalikeError."""
        try:
            return pages.picture_page(walk.picture(self._connection, id, path, at))
        except grpc.RpcError as error:
            failed = cause(error)
            raise LookalikeError(str(error) if failed is None else explain(failed)) from error


def _has_screen(environment: Mapping[str, str]) -> bool:
    """Whether a person looks at this terminal on a screen of this machine."""
    return console.is_terminal and (sys.platform == "darwin" or any(map(environment.get, _DISPLAYS)))


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except StageError as error:
        raise LookalikeError(str(error)) from error
