"""Workplaces on the machine itself: commands are its processes, each with a `/pfs` of its own. Knows no datums."""

import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from localpachd.worker import environment, secret_store
from localpachd.worker.environment import PFS, PFS_VARIABLE, EnvironmentProblem
from localpachd.worker.layout.pfs_layout import SCRATCH, PfsLayout
from localpachd.worker.machine import code_files, invocation, leftover_processes, memory_files, namespaces
from localpachd.worker.machine.invocation import carry_variables, tool_variables
from localpachd.worker.machine.machine_view import MachineFiles, MachineView, MountProblem, view
from localpachd.worker.machine.namespaces import Confinement
from localpachd.worker.machine.user_process import UserProcess
from localpachd.worker.machine.worker_limits import CommandLimits, cpu_pinning
from localpachd.worker.service_network import ServiceNetwork
from localpachd.worker.tasks import ImageStatus, ServicePorts, Task
from localpachd.worker.workplace import WorkerStores, Workplace, encoded

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessSurroundings:
    """The part of the machine that processes get: the files of `view`, the server's variables of these names beside the
    usual ones, and `user`, who runs the commands of tasks that name none ("" for the server's own)."""

    view: MachineView = field(default_factory=lambda: view(()))
    variables: frozenset[str] = frozenset()
    user: str = ""


class MachineBackend:
    """Implements `workplace.WorkplaceBackend`: the machine takes the place of the image. `confinement` is found by
    trials in `scratch` when it is not given. `surroundings` say what processes get of the machine."""

    def __init__(
        self,
        stores: WorkerStores,
        scratch: Path,
        confinement: Confinement | None = None,
        surroundings: ProcessSurroundings | None = None,
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.surroundings = surroundings or ProcessSurroundings()
        self.stores = stores
        self._scratch = scratch.resolve()
        self.family = leftover_processes.family(scratch)
        if left := leftover_processes.kill_family(self.family):
            _log.warning("killed %d processes that user code of the last run had left running", left)
        # Its other end closes when this process dies, and with that the processes that watch it.
        self.lifeline = os.pipe()
        self.confinement = confinement or namespaces.detect(self._scratch)
        self._lock = threading.Lock()
        self._network_tried = False
        self._with_network: Confinement | None = None

    def open(
        self, directory: Path, task: Task, gpus: tuple[str, ...], ports: ServicePorts | None = None
    ) -> "MachineWorkplace":
        """As `workplace.WorkplaceBackend` says. The processes belong to the calling thread: they end if it ends."""
        own = self._own_network() if ports is not None and ports.own_network else None
        network = ServiceNetwork(ports, own is not None)
        try:
            return MachineWorkplace(self, directory, task, gpus, own or self.confinement, network)
        except BaseException:
            network.close()
            raise

    def state(self, task: Task) -> str:
        variables = environment.machine_variables(task, PFS, "", (), self.surroundings.variables)
        return f"{code_files.code_state(task, variables)} {secret_store.state(task.secrets, self.stores.secrets)}"

    def shortcomings(self) -> list[str]:
        if self.confinement.mounts:
            return []
        return [
            f"{PFS} cannot be mounted on this machine: the variable {PFS_VARIABLE} names the directory that stands in"
            f" for it, and code that contains the path {PFS} will not find its files. /dev/shm is the machine's, and"
            " files in it do not count towards resource_limits.memory"
        ]

    def images(self, wanted: Collection[str]) -> Mapping[str, ImageStatus]:
        """As `LocalRunner` says: every image is ready, since none is used."""
        return {}

    def close(self) -> None:
        for end in reversed(self.lifeline):
            os.close(end)

    def _own_network(self) -> Confinement | None:
        """The confinement of a service with a network of its own; None where that is impossible. Tried once."""
        with self._lock:
            if not self._network_tried:
                self._network_tried = True
                self._with_network = namespaces.with_network(self.confinement, self._scratch)
            return self._with_network


class MachineWorkplace(Workplace):
    """A workplace with processes started by `confinement`."""

    def __init__(
        self,
        backend: MachineBackend,
        directory: Path,
        task: Task,
        gpus: tuple[str, ...],
        confinement: Confinement,
        network: ServiceNetwork,
    ) -> None:
        stores, surroundings = backend.stores, backend.surroundings
        user = invocation.user(task.user or surroundings.user)
        pfs = directory / "pfs"
        shown = confinement.shown(pfs)
        layout = PfsLayout(pfs, shown, stores.db, stores.chunks, user.owner)
        if not confinement.mounts:
            pfs.chmod(0o700)  # its path can be in the list of processes, and others may have to pass the root
        temporary = layout.directory("tmp")
        env = environment.machine_variables(task, shown, temporary, gpus, surroundings.variables)
        env |= {name: value for name, value in user.variables(temporary) if name not in dict(task.env)}
        own_tmp = directory / "root.tmp" if confinement.mounts else None
        files = MachineFiles(surroundings.view, own_tmp, user.options)
        super().__init__(stores, task, layout, files, env, network)
        self._backend = backend
        self._confinement = confinement
        self._root = directory / "root"
        self._memory, self._cpus = task.memory, task.cpus
        self._user = user
        self._cwd = invocation.working_directory(task, shown, layout.directory("work"))
        mounts = secret_store.mounts(task.secrets, stores.secrets, directory / "secrets")
        secret_store.give_ownership(mounts.values(), user.owner)
        self._mount(mounts)
        own = [layout.pfs / SCRATCH / "tmp", *([own_tmp] if own_tmp is not None else ())]
        self._in_memory = own if memory_files.is_in_memory(directory) else []

    def _mount(self, mounts: Mapping[str, Path]) -> None:
        if mounts and not self._confinement.mounts:
            raise EnvironmentProblem(
                "transform.secrets: nothing can be mounted on this machine: use env_var in place of mount_path"
            )
        if mounts:
            self._confinement = replace(self._confinement, rebuild=True)
        if self._confinement.mounts:
            self._root.mkdir()
            try:
                self._confinement.prepare(self._root, mounts, self._backend.surroundings.view, self._memory)
            except MountProblem as problem:
                raise EnvironmentProblem(f"transform.secrets: {problem}") from problem

    def start(
        self,
        cmd: tuple[str, ...],
        stdin: tuple[str, ...],
        variables: Mapping[str, str],
        line: Callable[[str], None],
        notify: Callable[[], None],
    ) -> UserProcess:
        confinement, lifeline = self._confinement, self._backend.lifeline[0]
        env = {**self.env, **self._secret_env, **variables}
        found = invocation.program(cmd, env, self._cwd)
        try:
            with carry_variables(env, found, self._secret_env.keys()) as (carrying, file):
                relay = self._network.relay
                before = (*relay, "--passed", str(file), "--") if relay else ()
                command = confinement.command(
                    carrying, self.layout.pfs, self._cwd, self._root, self._user.options, lifeline, before
                )
                inherited = (lifeline, file, *self._network.inherited)
                return UserProcess(
                    [*cpu_pinning(self._cpus), *command],
                    tool_variables(),
                    encoded(stdin),
                    line,
                    notify,
                    confinement.own_processes,
                    inherited,
                    CommandLimits(self._memory, self._in_memory),
                    self._backend.family,
                )
        except (OSError, ValueError) as failure:
            raise EnvironmentProblem(f"fork/exec {cmd[0]}: {failure}") from failure
