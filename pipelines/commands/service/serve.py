"""The command that serves the search over HTTP, here or as a pipeline."""

import contextlib
from dataclasses import replace
from typing import Annotated

import typer

from pipelines.analysis.time_travel import past_library
from pipelines.analysis.tracing import trace_page, tracer
from pipelines.client.commit_sets import commit_at
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import explained
from pipelines.client.services import service_credentials
from pipelines.client.services.service_roles import SEARCH
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import choose_server, open_server_connection, open_write_connection
from pipelines.commands.kit.options import AddressOption, NetworksOption
from pipelines.commands.kit.terminal import say
from pipelines.commands.service import service_deployment, service_options
from pipelines.commands.service.command_editor import CommandEditor
from pipelines.commands.service.service_options import ServiceOptions
from stages.serving.run.service_runner import ServiceRole

app = App()


@app.command(
    examples=(
        "lookalike serve",
        "lookalike serve --port 0 --no-browser",
        "lookalike serve --at 2026-11-01",
        "lookalike serve --edit",
        "lookalike serve --vectors",
        "lookalike serve --token-file token --behind-proxy pictures.example.org",
        "lookalike serve --deploy",
    )
)
def serve(
    at: Annotated[
        str,
        typer.Option(
            metavar="COMMIT|DATE", help="Serve the library as of a commit id, an ancestor, or a date [default: follow]."
        ),
    ] = "",
    port: Annotated[int | None, service_options.port_of(SEARCH)] = None,
    listen: service_options.ListenOption = "",
    token_file: service_options.TokenOption = None,
    tls_cert: service_options.CertificateOption = None,
    tls_key: service_options.KeyOption = None,
    behind_proxy: service_options.ProxyOption = "",
    fetch_from: NetworksOption = None,
    browser: service_options.BrowserOption = True,
    edit: service_options.EditOption = False,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Search by the vectors that `lookalike vectors add` has put.")
    ] = False,
    deploy: service_options.DeployOption = False,
    off: service_options.OffOption = False,
    address: AddressOption = "",
) -> None:
    """Search the library in the browser, over HTTP and from Python, until Ctrl-C. Follows new commits.

    Only this machine can ask, unless --listen or --behind-proxy say otherwise."""
    given = ServiceOptions(port, listen, token_file, tls_cert, tls_key, behind_proxy, fetch_from, browser)
    service_options.check(given, deploy, off, {"--at": at, "--edit": edit, "--vectors": vectors})
    if edit and at:
        raise typer.BadParameter("--edit changes the newest library: leave out --at")
    if vectors and at:
        raise typer.BadParameter("--vectors follows the newest vectors: leave out --at")
    if deploy or off:
        service_deployment.change(open_write_connection(address), given, SEARCH, off)
        return
    server = choose_server(address)
    with contextlib.ExitStack() as until_the_end:
        if edit and token_file is None:
            made = until_the_end.enter_context(service_credentials.temporary_token())
            given = replace(given, token_file=made, shows_token=True)
        with service_options.explained():
            wanted = replace(service_options.configured(given, SEARCH, server), by_vectors=vectors)
        connection = open_server_connection(server)
        if at:
            wanted = replace(wanted, at=_moment(connection, at))
        role = ServiceRole(tracer=_Tracer(connection), editor=CommandEditor(connection) if edit else None)
        service_options.serve(connection, wanted, given, SEARCH, role)


def _moment(connection: Connection, at: str) -> str:
    """The commit set whose library stood at the moment that `at` means."""
    commit = past_library.answering_commit(connection, connection.retry(commit_at, connection, at))
    say(f"serving the library of commit {commit}, whatever comes later")
    return commit


class _Tracer:
    """Makes the pages of traces as `lookalike trace` does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def page(self, id: str, path: str, at: str) -> str:
        """See stages.serving.http.trace_renderer. Raises LookalikeError."""
        with explained():
            return trace_page.page(tracer.picture(self._connection, id, path, at))
