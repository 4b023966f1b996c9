"""One worker's place on this machine: its `/pfs`, its variables, and how a command is started there. Judges nothing."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from localpachd.db import Database
from localpachd.storage.chunks import Chunks
from localpachd.worker import environment, secrets
from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.layout import SCRATCH, Layout
from localpachd.worker.namespaces import Confinement
from localpachd.worker.pipes import PipeBudget
from localpachd.worker.processes import UserProcess
from localpachd.worker.roots import MountProblem
from localpachd.worker.secrets import Secrets
from localpachd.worker.tasks import Task


class Machine:
    """What all workers of this machine share.

    `lifeline` is the read end of a pipe whose other end closes when this process dies.
    """

    def __init__(self, db: Database, chunks: Chunks, secrets: Secrets, confinement: Confinement, lifeline: int) -> None:
        self.db = db
        self.chunks = chunks
        self.secrets = secrets
        self.confinement = confinement
        self.lifeline = lifeline
        self.pipes = PipeBudget()


class Workplace:
    """The place where one datum set is processed, in `directory`, which it has for itself.

    Raises EnvironmentProblem when the task asks for what this machine cannot give. `env` are the variables of every
    process started here, but for those that hold secrets.
    """

    def __init__(
        self,
        machine: Machine,
        directory: Path,
        task: Task,
        gpus: tuple[str, ...],
        confinement: Confinement | None = None,
    ) -> None:
        self.machine = machine
        self._confinement = confinement or machine.confinement
        self._root = directory / "root"
        self._user = environment.user(task.user)
        pfs = directory / "pfs"
        shown = self._confinement.shown(pfs)
        self.layout = Layout(pfs, shown, machine.db, machine.chunks, self._user.owner)
        temporary = self.layout.directory("tmp")
        self.env = environment.worker_variables(task, shown, temporary, gpus)
        if task.pachd:
            self.env["PACH_CONFIG"] = self._client_configuration(task.pachd)
        self._cwd = environment.working_directory(task, shown, self.layout.directory("work"))
        self._secret_env = secrets.variables(task.secrets, machine.secrets)
        mounts = secrets.mounts(task.secrets, machine.secrets, directory / "secrets", self._user.owner)
        if mounts and not self._confinement.mounts:
            raise EnvironmentProblem(
                "transform.secrets: nothing can be mounted on this machine: use env_var in the place of mount_path"
            )
        if mounts:
            self._confinement = replace(self._confinement, rebuild=True)
        if self._confinement.mounts:
            self._root.mkdir()
            try:
                self._confinement.prepare(self._root, mounts)
            except MountProblem as problem:
                raise EnvironmentProblem(f"transform.secrets: {problem}") from problem

    def _client_configuration(self, pachd: str) -> str:
        """Writes what pachctl and the client libraries read to find the server; returns its path for processes."""
        shown = self.layout.directory("pachctl")
        contexts = {"localpachd": {"pachd_address": f"grpc://{pachd}"}}
        text = json.dumps({"v2": {"active_context": "localpachd", "contexts": contexts}})
        (self.layout.pfs / SCRATCH / "pachctl" / "config.json").write_text(text)
        return f"{shown}/config.json"

    def start(
        self,
        cmd: tuple[str, ...],
        stdin: tuple[str, ...],
        variables: Mapping[str, str],
        line: Callable[[str], None],
        ring: Callable[[], None],
        before: tuple[str, ...] = (),
        inherited: tuple[int, ...] = (),
    ) -> UserProcess:
        """Starts a command with `variables` on top of `env`; see UserProcess and Confinement.command for the rest.

        Raises EnvironmentProblem when it cannot be started.
        """
        confinement = self._confinement
        env = {**self.env, **self._secret_env, **variables}
        env, found = environment.through_shell(env, environment.program(cmd, env, self._cwd))
        lifeline = self.machine.lifeline
        command = confinement.command(
            found, self.layout.pfs, self._cwd, self._root, self._user.options, lifeline, before
        )
        text = "".join(f"{each}\n" for each in stdin).encode(errors="surrogateescape")
        try:
            return UserProcess(command, env, text, line, ring, confinement.own_processes, (lifeline, *inherited))
        except (OSError, ValueError) as failure:
            raise EnvironmentProblem(f"fork/exec {cmd[0]}: {failure}") from failure
