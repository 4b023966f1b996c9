"""Workplaces in containers: each runs the task's image, with a `/pfs` of its own mounted into it. Knows no datums.

A container exists for as long as its workplace, as a worker's does on a cluster, and commands run in it one after the
other: each finds the files that earlier ones left outside of `/pfs`.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

from localpachd.worker import environment, secret_store
from localpachd.worker.docker import container, container_reaper, container_users
from localpachd.worker.docker.container import Container, ContainerFiles
from localpachd.worker.docker.container_engine import ContainerEngine, EngineError
from localpachd.worker.docker.container_process import ContainerProcess, readable
from localpachd.worker.docker.container_reaper import ContainerReaper
from localpachd.worker.docker.container_users import ContainerUser
from localpachd.worker.docker.image_puller import ImagePuller
from localpachd.worker.environment import PFS, EnvironmentProblem
from localpachd.worker.layout.pfs_layout import PfsLayout
from localpachd.worker.service_network import ServiceNetwork
from localpachd.worker.tasks import ImageStatus, ServicePorts, Task
from localpachd.worker.workplace import NotReusable, WorkerStores, Workplace, encoded

LABEL = "localpachd.root"
"""Every container of a server carries its root directory under this label."""
_SERVER = "localpachd.server"
_PAUSE = "/.localpachd-pause"
_PATIENCE = 30.0
"""Seconds that the relay of a service may take to start."""


class DockerBackend:
    """Implements `workplace.WorkplaceBackend` with the containers of one engine.

    `root` distinguishes this server's containers from others': those that a killed server left are removed. `changed`
    is called when an image has arrived or gone. Raises EngineError.
    """

    def __init__(self, stores: WorkerStores, engine: ContainerEngine, root: Path, changed: Callable[[], None]) -> None:
        self._stores = stores
        self._engine = engine
        self._root = str(root.resolve())
        self._images = ImagePuller(engine, changed)
        about = engine.call("GET", "/info")
        self._architecture = str(about.get("Architecture", ""))
        if not container.is_supported(self._architecture):
            raise EngineError(f"the container engine runs on {self._architecture}; x86_64 or aarch64 is required")
        self._rootless = any("rootless" in option for option in about.get("SecurityOptions") or ())
        container_reaper.clear(engine, f"{LABEL}={self._root}")
        self._server = uuid4().hex
        self._reaper = ContainerReaper(engine, f"{_SERVER}={self._server}")

    def open(
        self, directory: Path, task: Task, gpus: tuple[str, ...], ports: ServicePorts | None = None
    ) -> "ContainerWorkplace":
        """As `workplace.WorkplaceBackend` says. Raises EngineError when the engine, or an image that was ready, has
        gone."""
        image = self._inspected(task.image)
        # Entering a container's network from outside requires root and nsenter(1).
        own = ports is not None and ports.own_network and os.geteuid() == 0 and shutil.which("nsenter") is not None
        network = ServiceNetwork(ports, own)
        try:
            container.write_pause_binary(directory / "pause", self._architecture)
            (directory / "pfs").mkdir()
            mounted = secret_store.mounts(task.secrets, self._stores.secrets, directory / "secrets")
            body = _body(task, gpus, directory, mounted, "none" if own else "host")
            body["Labels"] = {LABEL: self._root, _SERVER: self._server, "localpachd.pipeline": task.pod.pipeline}
            made = self._made(f"localpachd-{task.pod.pipeline}-{directory.name}", body)
        except BaseException:
            network.close()
            raise
        try:
            account = container_users.find_user(made, task.user, image.get("User") or "", self._rootless)
            secret_store.give_ownership(mounted.values(), account.owner)
            layout = PfsLayout(directory / "pfs", PFS, self._stores.db, self._stores.chunks, account.owner)
            files = ContainerFiles(made, directory / "copies")
            env = environment.container_variables(task, image.get("Env") or (), len(gpus))
            return ContainerWorkplace(self._stores, task, layout, files, env, network, self._engine, made, account)
        except BaseException:
            network.close()
            made.remove()
            raise

    def state(self, task: Task) -> str:
        """As `workplace.WorkplaceBackend` says: a container ends with its datum set."""
        raise NotReusable("it runs in a container, which ends with the set")

    def shortcomings(self) -> list[str]:
        found = []
        if os.geteuid() != 0 and not self._rootless:
            found.append(
                f"localpachd is not running as root: commands run in containers as this machine's user {os.getuid()}"
            )
        if self._rootless and not self._engine.podman:
            found.append(
                "this Docker engine is rootless: its containers cannot reach this server, for NextDatum or as clients"
            )
        return found

    def images(self, wanted: Collection[str]) -> Mapping[str, ImageStatus]:
        return self._images.wanted(wanted)

    def close(self) -> None:
        self._images.close()
        self._reaper.close()

    def _inspected(self, image: str) -> Mapping[str, Any]:
        """The configuration of an image."""
        try:
            found: Mapping[str, Any] = self._images.inspect(image)["Config"] or {}
        except EngineError as failure:
            if failure.status == HTTPStatus.NOT_FOUND:
                self._images.lost(image)
            raise
        return found

    def _made(self, name: str, body: Mapping[str, Any]) -> Container:
        made: Container | None = None
        try:
            made = Container(self._engine, name, body)
            made.run()
        except EngineError as failure:
            if made is not None:
                made.remove()
            # An error of the specification; the second is Podman's way to report one.
            if failure.status == HTTPStatus.BAD_REQUEST or "error mounting" in str(failure):
                raise EnvironmentProblem(f"cannot start a container: {failure}") from failure
            raise
        return made


class ContainerWorkplace(Workplace):
    """A workplace in the container `made`, whose commands `account` runs."""

    def __init__(
        self,
        stores: WorkerStores,
        task: Task,
        layout: PfsLayout,
        files: ContainerFiles,
        env: Mapping[str, str],
        network: ServiceNetwork,
        engine: ContainerEngine,
        made: Container,
        account: ContainerUser,
    ) -> None:
        super().__init__(stores, task, layout, files, env, network)
        self._engine = engine
        self._container = made
        self._relay: RelayProcess | None = None
        self._command: dict[str, Any] = {"User": account.name} if account.name else {}
        if task.working_dir:
            self._command["WorkingDir"] = os.path.normpath("/" + task.working_dir.lstrip("/"))

    def start(
        self,
        cmd: tuple[str, ...],
        stdin: tuple[str, ...],
        variables: Mapping[str, str],
        line: Callable[[str], None],
        notify: Callable[[], None],
    ) -> ContainerProcess:
        """As `workplace.Workplace` says. Raises EngineError when the engine itself fails."""
        if not cmd:
            raise EnvironmentProblem("invalid pipeline transform, no command specified")
        env = [f"{name}={value}" for name, value in {**self.env, **self._secret_env, **variables}.items()]
        if any("\0" in text for text in (*cmd, *env)):
            raise EnvironmentProblem(f"fork/exec {cmd[0]}: embedded null byte")
        if self._network.relay and self._relay is None:
            self._relay = RelayProcess(self._network, self._container.pid)
        command = {**self._command, "Cmd": list(cmd), "Env": env}
        return ContainerProcess(self._engine, self._container, command, encoded(stdin), line, notify)

    def close(self) -> None:
        try:
            if self._relay is not None:
                self._relay.close()
            super().close()
        finally:
            self._container.remove()


def _body(
    task: Task, gpus: Sequence[str], directory: Path, mounted: Mapping[str, Path], network: str
) -> dict[str, Any]:
    """The body for `POST /containers/create`."""
    places = [(directory / "pfs", PFS, False), (directory / "pause", _PAUSE, True)]
    places += [(source, target, True) for target, source in mounted.items()]
    host: dict[str, Any] = {
        "NetworkMode": network,
        "Mounts": [
            {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": readonly}
            for source, target, readonly in places
        ],
        "LogConfig": {"Type": "none"},  # the output of commands is in the pipeline's log
        # Where SELinux labels files or users are mapped, the container could not access /pfs.
        "SecurityOpt": ["label=disable"],
        "UsernsMode": "host",
    }
    if task.memory:
        host |= {"Memory": task.memory, "MemorySwap": task.memory}
    if task.cpus:
        host["NanoCpus"] = round(task.cpus * 1e9)
    if gpus:
        host["DeviceRequests"] = [{"DeviceIDs": list(gpus), "Capabilities": [["gpu"]]}]
    return {
        "Image": task.image,
        "Entrypoint": [_PAUSE],
        "Cmd": [],
        "User": "0:0",
        # Images made for NVIDIA's runtime request all GPUs.
        "Env": [] if gpus else ["NVIDIA_VISIBLE_DEVICES=void"],
        "Healthcheck": {"Test": ["NONE"]},  # Kubernetes ignores it, too
        "HostConfig": host,
    }


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
        if not readable(self._process.stdout, _PATIENCE) or not self._process.stdout.read(1):
            self._process.kill()
            said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            self.close()
            reason = said[-1] if said else "its relay does not start"
            raise EnvironmentProblem(f"the service cannot be reached: {reason}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
