"""The workplace of a datum set: the interface that both backends (`worker.machine`, `worker.docker`) implement, and
what they have in common. Knows neither the kernel's processes nor containers.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore
from localpachd.worker import secret_store
from localpachd.worker.commands import CommandProcess
from localpachd.worker.layout.pfs_layout import SCRATCH, PfsLayout
from localpachd.worker.layout.pipe_budget import PipeBudget
from localpachd.worker.layout.visible_files import LinkedFiles
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.service_network import ServiceNetwork
from localpachd.worker.tasks import ImageStatus, ServicePorts, Task

_TOKEN = "PACH_PYTHON_AUTH_TOKEN"


@dataclass(frozen=True, slots=True)
class WorkerStores:
    """The stores that all workers of one server share, whatever the backend. `token` is what their processes say to be
    answered by this server, "" where it asks for none."""

    db: Database
    chunks: ChunkStore
    secrets: SecretStore
    pipes: PipeBudget = field(default_factory=PipeBudget)
    token: str = field(default="", repr=False)


class Workplace(ABC):
    """A place where one datum set is processed, or one command of a service or spout runs.

    `env` holds the variables of every process started here, except those that hold secrets and a datum's own.
    `statement` tells people where a service can be reached; "" for everything else. Raises EnvironmentProblem.
    """

    def __init__(
        self,
        stores: WorkerStores,
        task: Task,
        layout: PfsLayout,
        linked_files: LinkedFiles,
        env: Mapping[str, str],
        network: ServiceNetwork,
    ) -> None:
        self.stores = stores
        self.layout = layout
        self.linked_files = linked_files
        self.statement = network.statement
        self.env = {**env, **(_client_configuration(layout, task.pachd, stores.token) if task.pachd else {})}
        self._network = network
        # That of its secrets, and the token by which python-pachyderm and pachyderm-sdk are answered by this server:
        # variables that nobody else may see.
        self._secret_env = {_TOKEN: stores.token} if stores.token else {}
        self._secret_env |= secret_store.variables(task.secrets, stores.secrets)

    @abstractmethod
    def start(
        self,
        cmd: tuple[str, ...],
        stdin: tuple[str, ...],
        variables: Mapping[str, str],
        line: Callable[[str], None],
        notify: Callable[[], None],
    ) -> CommandProcess:
        """Starts a command with `variables` on top of `env`; `line` and `notify` are as for a CommandProcess.

        Raises EnvironmentProblem when it cannot be started.
        """

    def close(self) -> None:
        """Releases all that the workplace holds; nothing is running in it any more."""
        self._network.close()


class NotReusable(Exception):
    """Processes of a task cannot be kept between datum sets; the text is the reason."""


class WorkplaceBackend(Protocol):
    """Opens workplaces: on this machine itself, or in containers on it. Thread-safe."""

    def open(self, directory: Path, task: Task, gpus: tuple[str, ...], ports: ServicePorts | None = None) -> Workplace:
        """A workplace with a `directory` of its own, and with `ports` where its command is a service.

        Raises EnvironmentProblem when the task asks for something that it cannot have, PortUnavailable, and OSError.
        """

    def state(self, task: Task) -> str:
        """The state of all that processes of a task read once: their code, and their secrets. Raises NotReusable."""

    def shortcomings(self) -> list[str]:
        """The ways in which this backend falls short of a cluster, as texts that each pipeline's log gets once."""

    def images(self, wanted: Collection[str]) -> Mapping[str, ImageStatus]:
        """As `LocalRunner` says."""

    def close(self) -> None:
        """Releases the machine's resources; call it when no workplace is open any more."""


def _client_configuration(layout: PfsLayout, pachd: str, token: str) -> dict[str, str]:
    """Writes the configuration by which pachctl and the client libraries find the server at `pachd` (host:port) into
    `/pfs`, with the token that it asks for; returns the variable that names the file to processes."""
    shown = layout.directory("pachctl")
    context = {"pachd_address": f"grpc://{pachd}", **({"session_token": token} if token else {})}
    text = json.dumps({"v2": {"active_context": "localpachd", "contexts": {"localpachd": context}}})
    (layout.pfs / SCRATCH / "pachctl" / "config.json").write_text(text)
    return {"PACH_CONFIG": f"{shown}/config.json"}


def encoded(stdin: tuple[str, ...]) -> bytes:
    """The bytes of a command's standard input, given as lines."""
    return "".join(f"{each}\n" for each in stdin).encode(errors="surrogateescape")
