"""The command that serves the search over HTTP, here or as a pipeline."""

from dataclasses import replace
from functools import partial
from typing import Annotated

import grpc
import typer

from pipelines.client.choosing import target
from pipelines.client.moments import commit_at
from pipelines.client.server.connection import Connection
from pipelines.client.server.failures import cause, explain
from pipelines.client.server.outages import outlasting
from pipelines.client.services.roles import SEARCH
from pipelines.commands.kit.app import App
from pipelines.commands.kit.connecting import connected_to, connected_to_write
from pipelines.commands.kit.options import AddressOption
from pipelines.commands.kit.terminal import say
from pipelines.commands.service import serviceoptions, servicing
from pipelines.commands.service.serviceoptions import (
    BrowserOption,
    CertificateOption,
    DeployOption,
    Given,
    KeyOption,
    ListenOption,
    NetworksOption,
    OffOption,
    ProxyOption,
    TokenOption,
)
from pipelines.errors import LookalikeError
from pipelines.explaining.timetravel import past
from pipelines.explaining.tracing import pages, walk
from stages.serving.run.program import Role

app = App()


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
            f"[default: {SEARCH.port}].",
        ),
    ] = None,
    listen: ListenOption = "",
    token_file: TokenOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    behind_proxy: ProxyOption = "",
    fetch_from: NetworksOption = None,
    browser: BrowserOption = True,
    deploy: DeployOption = False,
    off: OffOption = False,
    address: AddressOption = "",
) -> None:
    """Search the library in the browser, over HTTP and from Python, until Ctrl-C. Follows new commits.

    Only this machine can ask, unless --listen or --behind-proxy say otherwise."""
    given = Given(port, listen, token_file, tls_cert, tls_key, behind_proxy, fetch_from, browser)
    serviceoptions.check(given, deploy, off, {"--at": at})
    if deploy or off:
        servicing.change(connected_to_write(address), servicing.wanted(given), SEARCH, off)
        return
    server = target(address)
    with serviceoptions.explained():
        wanted = serviceoptions.configured(given, SEARCH, server)
    connection = connected_to(server)
    if at:
        wanted = replace(wanted, at=_moment(connection, at))
    serviceoptions.serve(connection, wanted, given, SEARCH, Role(tracer=_Tracer(connection)))


def _moment(connection: Connection, at: str) -> str:
    """The commit set whose library stood at the moment that `at` means."""
    commit = past.answering(connection, outlasting(connection, partial(commit_at, connection, at)))
    say(f"serving the library of commit {commit}, whatever comes later")
    return commit


class _Tracer:
    """Makes the pages of traces as `lookalike trace` does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def page(self, id: str, path: str, at: str) -> str:
        """See stages.serving.http.tracing. Raises LookalikeError."""
        try:
            return pages.picture_page(walk.picture(self._connection, id, path, at))
        except grpc.RpcError as error:
            failed = cause(error)
            raise LookalikeError(str(error) if failed is None else explain(failed)) from error
