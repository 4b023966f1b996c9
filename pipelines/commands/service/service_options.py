"""The options that commands which serve over HTTP share, and a service that runs here made of them."""

import contextlib
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.client.server.connection import Connection, ServerTarget
from pipelines.client.services import service_discovery
from pipelines.client.services.service_roles import ServiceRole
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.options import path
from pipelines.commands.kit.terminal import console, say
from pipelines.errors import LookalikeError
from pipelines.library import stage_processes
from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache, default_place
from stages.files import public_addresses
from stages.knn.search_settings import read_settings
from stages.serving.follow import configuration
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.pachyderm_client import PachydermAddress
from stages.serving.run import service_runner

ListenOption = Annotated[str, typer.Option(metavar="HOST:PORT", help="The address to listen on, in place of --port.")]
TokenOption = Annotated[
    Path | None, typer.Option(metavar="FILE", parser=path, help="The file with the token that requests must have.")
]
CertificateOption = Annotated[
    Path | None, typer.Option(metavar="FILE", parser=path, help="The certificate for TLS, in PEM.")
]
KeyOption = Annotated[Path | None, typer.Option(metavar="FILE", parser=path, help="Its key, in PEM.")]
ProxyOption = Annotated[
    str, typer.Option(metavar="HOST", help="The name of the proxy with TLS in front of the service.")
]
BrowserOption = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, where there is one.")
]
DeployOption = Annotated[
    bool, typer.Option("--deploy", help="Deploy the service as a pipeline in place of running it here.")
]
EditOption = Annotated[
    bool,
    typer.Option(
        "--edit", help="Let the page label pictures and remove copies. Needs a token; makes one if none is given."
    ),
]
OffOption = Annotated[bool, typer.Option("--off", help="Delete the deployed service, its token and its secret.")]

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
"""Variables that name the screen of this user."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of a service as they are given. For a deployed one the port is that of the nodes, and None and ""
    leave a choice as it is; listen, networks, browser and shows_token are for one that runs here. shows_token: whether
    the printed address holds the token, which was made for this start."""

    port: int | None = None
    listen: str = ""
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    proxy: str = ""
    networks: list[str] | None = None
    browser: bool = False
    shows_token: bool = False


def port_of(role: ServiceRole) -> Any:
    """The option of a service's port."""
    words = "The port of 127.0.0.1 (0 for a free one), or of the nodes for a deployed service"
    return typer.Option(min=0, max=65535, metavar="PORT", help=f"{words} [default: {role.port}].")


def check(given: ServiceOptions, deploy: bool, off: bool, local: Mapping[str, object]) -> None:
    """Raises BadParameter for options that exclude each other. local: further ones, by name, of a service that runs
    here alone."""
    if deploy and off:
        raise typer.BadParameter("--deploy and --off exclude each other")
    if given.listen and given.port is not None:
        raise typer.BadParameter("--listen names the port, too: leave --port out")
    for name, value in {**local, "--listen": given.listen, "--fetch-from": given.networks}.items():
        if deploy and value:
            raise typer.BadParameter(f"{name} is for a service that runs here, not for --deploy")


def configured(given: ServiceOptions, role: ServiceRole, server: ServerTarget) -> ServiceConfiguration:
    """The configuration of a service that runs here. Raises StageError if it would not be safe."""
    default = role.port if given.port is None else given.port
    host, number = configuration.listening(given.listen) if given.listen else (configuration.LOOPBACK, default)
    return configuration.check(
        ServiceConfiguration(
            server=PachydermAddress(server.address, server.project, server.token, server.root_certificates),
            host=host,
            port=number,
            token=configuration.read_token(given.token_file) if given.token_file else "",
            certificate=given.certificate,
            key=given.key,
            proxy=given.proxy,
            settings=read_settings(os.environ),
            fetched=public_addresses.networks(" ".join(given.networks or ())),
        )
    )


def serve(
    connection: Connection,
    wanted: ServiceConfiguration,
    given: ServiceOptions,
    role: ServiceRole,
    running: service_runner.ServiceRole,
) -> None:
    """Serves until Ctrl-C, SIGTERM, or the end for lack of requests; other commands of this user find it meanwhile."""
    interrupts.explain("the service has ended")
    stage_processes.hide_gpus()
    with contextlib.ExitStack() as until_the_end:

        def announce(url: str) -> None:
            say(f"{role.command}: {url}{f'/#token={wanted.token}' if given.shows_token else ''}")
            if wanted.proxy:
                say(f"through the proxy: https://{wanted.proxy}")
            at = "vectors" if wanted.by_vectors else wanted.at  # questions to the library are not for it
            found = service_discovery.register(
                connection, url, token_file=given.token_file, certificate=wanted.certificate, at=at
            )
            if not until_the_end.enter_context(found):
                say("other commands will not find it: its address cannot be written to the directory of this user")
            # Other users see the arguments of a browser that starts.
            if given.browser and not given.shows_token and _has_screen(os.environ):
                threading.Thread(target=webbrowser.open, args=(url,), name="browser", daemon=True).start()

        with explained():
            heard = service_runner.run(wanted, FileCache(default_place()), os.environ, announce, say, running)
    if heard == service_runner.INTERRUPTED:
        signal.raise_signal(signal.SIGINT)  # ends it as it ends every command


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """A StageError as the command's own error."""
    try:
        yield
    except StageError as error:
        raise LookalikeError(str(error)) from error


def _has_screen(environment: Mapping[str, str]) -> bool:
    """Whether a person looks at this terminal on a screen of this machine."""
    return console.is_terminal and (sys.platform == "darwin" or any(map(environment.get, _DISPLAYS)))
