"""The command that serves the promoted classifier over HTTP, here or as a pipeline."""

from dataclasses import replace
from typing import Annotated

import typer

from pipelines.client.services.service_roles import CLASSIFY
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import choose_server, open_server_connection, open_write_connection
from pipelines.commands.kit.options import AddressOption, NetworksOption
from pipelines.commands.service import service_deployment, service_options
from pipelines.commands.service.service_options import ServiceOptions
from stages.serving.run.service_runner import ServiceRole

app = App()


@app.command(
    examples=(
        "lookalike classify serve",
        "lookalike classify serve --port 0 --no-browser --idle-exit 600",
        "lookalike classify serve --token-file token --behind-proxy a.example.org",
        "lookalike classify serve --deploy",
    ),
)
def serve(
    at: Annotated[
        str,
        typer.Option(metavar="COMMIT", help="The model of this commit of select [default: follow promotions]."),
    ] = "",
    port: Annotated[int | None, service_options.port_of(CLASSIFY)] = None,
    listen: service_options.ListenOption = "",
    token_file: service_options.TokenOption = None,
    tls_cert: service_options.CertificateOption = None,
    tls_key: service_options.KeyOption = None,
    behind_proxy: service_options.ProxyOption = "",
    fetch_from: NetworksOption = None,
    browser: service_options.BrowserOption = True,
    idle_exit: Annotated[
        float | None,
        typer.Option(min=1, metavar="SECONDS", help="End after so long without a request [default: never]."),
    ] = None,
    deploy: service_options.DeployOption = False,
    off: service_options.OffOption = False,
    address: AddressOption = "",
) -> None:
    """Classify pictures in the browser and over HTTP with the promoted model, until Ctrl-C. Follows promotions.

    Only this machine can ask, unless --listen or --behind-proxy say otherwise."""
    given = ServiceOptions(port, listen, token_file, tls_cert, tls_key, behind_proxy, fetch_from, browser)
    service_options.check(given, deploy, off, {"--at": at, "--idle-exit": idle_exit})
    if deploy or off:
        service_deployment.change(open_write_connection(address), given, CLASSIFY, off)
        return
    server = choose_server(address)
    with service_options.explained():
        wanted = replace(service_options.configured(given, CLASSIFY, server), at=at)
    role = ServiceRole(searches=False, idle=idle_exit)
    service_options.serve(open_server_connection(server), wanted, given, CLASSIFY, role)
