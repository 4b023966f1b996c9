"""What a datum set is processed at, wherever its commands run: between those who order and those who start them.

Everything that the two backends (`worker.machine`, `worker.docker`) have in common. Knows neither processes of the
kernel nor containers.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from localpachd.db import Database
from localpachd.storage.chunks import Chunks
from localpachd.worker.commands import Process
from localpachd.worker.layout.budget import PipeBudget
from localpachd.worker.layout.links import LinkedFiles
from localpachd.worker.layout.placing import SCRATCH, Layout
from localpachd.worker.secrets import Secrets
from localpachd.worker.tasks import ImageStatus, Ports, Task


@dataclass(frozen=True, slots=True)
class Stores:
    """What all workers of one server share, wherever they run."""

    db: Database
    chunks: Chunks
    secrets: Secrets
    pipes: PipeBudget = field(default_factory=PipeBudget)


class Workplace(Protocol):
    """The place where one datum set is processed, or one long-lived command runs.

    `env` are the variables of every process started here, but for those that hold secrets and a datum's own.
    `statement` tells people where a service can be reached; "" for everything else.
    """

    @property
    def stores(self) -> Stores: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def env(self) -> Mapping[str, str]: ...

    @property
    def linked_files(self) -> LinkedFiles: ...

    @property
    def statement(self) -> str: ...

    def start(
        self,
        cmd: tuple[str, ...],
        stdin: tuple[str, ...],
        variables: Mapping[str, str],
        line: Callable[[str], None],
        notify: Callable[[], None],
    ) -> Process:
        """Starts a command with `variables` on top of `env`; `line` and `notify` are as for a UserProcess.

        Raises EnvironmentProblem when it cannot be started.
        """

    def close(self) -> None:
        """Lets go of all that the place holds; nothing runs in it any more."""


class Backend(Protocol):
    """Opens workplaces: on this machine itself, or in containers on it. Thread-safe."""

    def open(self, directory: Path, task: Task, gpus: tuple[str, ...], ports: Ports | None = None) -> Workplace:
        """A workplace that has `directory` for itself, with `ports` where its command is a service.

        Raises EnvironmentProblem when the task asks for what cannot be given, PortTaken, and OSError.
        """

    def shortcomings(self) -> list[str]:
        """Where this falls short of a cluster: what everybody who runs here should be told once."""

    def images(self, wanted: Collection[str]) -> Mapping[str, ImageStatus]:
        """As `tasks.Runner` says."""

    def close(self) -> None:
        """Lets go of the machine; call it when no workplace is open any more."""


def client_configuration(layout: Layout, pachd: str) -> dict[str, str]:
    """Writes what pachctl and the client libraries read to find the server at `pachd` (host:port) into `/pfs`; returns
    the variable that names it to processes."""
    shown = layout.directory("pachctl")
    contexts = {"localpachd": {"pachd_address": f"grpc://{pachd}"}}
    text = json.dumps({"v2": {"active_context": "localpachd", "contexts": contexts}})
    (layout.pfs / SCRATCH / "pachctl" / "config.json").write_text(text)
    return {"PACH_CONFIG": f"{shown}/config.json"}


def spoken(stdin: tuple[str, ...]) -> bytes:
    """What a command reads from its standard input."""
    return "".join(f"{each}\n" for each in stdin).encode(errors="surrogateescape")
