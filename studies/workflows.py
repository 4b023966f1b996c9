"""The same task for lookalike, DVC and Snakemake: pictures in a directory, queries, a model, and one result sheet that
is kept up to date. Owns the use of each tool; times and compares nothing."""

import os
import re
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path

from benchmarks.kit import disk, servers
from pipelines.client import backbones
from pipelines.client.deployment import deployment
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.library import backbone_push
from pipelines.specifications import pipeline_specs
from stages.backbone.backbone_spec import SPEC_FILE, parse_spec
from studies.kit.environment import SETUPS, Tool

ENTRY = "holiday"
"""The only query entry; the files in studies/setups name it, too."""


class Workflow(ABC):
    """Makes a sheet of `inputs` (images/<batch>/<picture>, queries/<ENTRY>/<picture>, models/) in a directory of its
    own. Every method raises RuntimeError with the output of a program that fails."""

    def __init__(self, inputs: Path, directory: Path) -> None:
        self.inputs = inputs
        self.directory = directory
        self.running = ExitStack()
        directory.mkdir()

    @abstractmethod
    def first(self) -> None:
        """From nothing to the sheet."""

    @abstractmethod
    def add(self, picture: Path) -> None:
        """Adds a picture to the library and brings the sheet up to date."""

    @abstractmethod
    def again(self) -> None:
        """Runs everything again with nothing changed."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes a picture of the inputs' images, <batch>/<picture>, and brings the sheet up to date."""

    @abstractmethod
    def steps(self) -> int:
        """The datums, jobs or stages that the last of these ran."""

    @abstractmethod
    def sheet(self) -> Path:
        """The directory of the sheet."""

    def disk(self) -> float:
        """The disk space of its directory in MiB, hard links counted once."""
        return disk.mib(self.directory)

    def close(self) -> None:
        """Ends whatever is still running."""
        self.running.close()


class Lookalike(Workflow):
    """localpachd with the unchanged specifications, and the `lookalike` command."""

    def __init__(self, inputs: Path, directory: Path) -> None:
        super().__init__(inputs, directory)
        shutil.copytree(inputs / "images", directory / "images")
        self._seen: set[tuple[str, str]] = set()

    def first(self) -> None:
        self._server = self.running.enter_context(servers.localpachd())
        self._address = f"grpc://127.0.0.1:{self._server.port}"
        connection = Connection(self._server.client(), self._address, "default")
        deployment.deploy(connection, pipeline_specs.load())
        spec = parse_spec((self.inputs / "models" / SPEC_FILE).read_bytes())
        backbone_push.put(Repository(connection, backbones.REPO), spec, self.inputs / "models")
        self._type("add", "--no-wait", self.directory / "images")
        self._type("query", self.inputs / "queries" / ENTRY, "--output", "results")

    def add(self, picture: Path) -> None:
        self._type("add", picture)
        self._type("results", "--output", "results")

    def again(self) -> None:
        self.add(self.directory / "images")

    def remove(self, name: str) -> None:
        (self.directory / "images" / name).unlink()  # or `again` would add it again
        self._type("remove", f"images/{name}")
        self._type("results", "--output", "results")

    def steps(self) -> int:
        client = self._server.client()
        found = {
            (spec.name, info.job.id): int(info.data_processed)
            for spec in pipeline_specs.load()
            for info in client.list_job(spec.name, details=False)
        }
        new = sum(processed for job, processed in found.items() if job not in self._seen)
        self._seen |= found.keys()
        return new

    def sheet(self) -> Path:
        return self.directory / "results" / ENTRY

    def disk(self) -> float:
        return self._server.disk()

    def _type(self, *words: str | Path) -> None:
        here = {"PACHD_ADDRESS": self._address, "PACH_CONFIG": str(self.directory / "none")}
        run([sys.executable, "-P", "-m", "pipelines.cli", *map(str, words)], self.directory, here)


class _Peer(Workflow):
    """A tool that works on plain directories: the inputs are copied to its own, beside the files of its set-up."""

    setup: str

    def __init__(self, inputs: Path, directory: Path, tool: Tool) -> None:
        super().__init__(inputs, directory)
        self.said = ""
        self._tool = tool
        shutil.copytree(inputs, directory, dirs_exist_ok=True)
        for file in (*SETUPS.glob("*.py"), *(SETUPS / self.setup).iterdir()):
            shutil.copyfile(file, directory / file.name)

    def add(self, picture: Path) -> None:
        batch = self.directory / "images" / f"added-{picture.stem}"
        batch.mkdir()
        shutil.copyfile(picture, batch / picture.name)
        self.again()

    def remove(self, name: str) -> None:
        (self.directory / "images" / name).unlink()
        self.again()

    def sheet(self) -> Path:
        return self.directory / "render" / ENTRY

    def type(self, *words: str) -> None:
        """Runs the tool in its directory, with its caches there, too."""
        here = {
            **_parameters(),
            "XDG_CACHE_HOME": str(self.directory / ".cache"),
            "DVC_SITE_CACHE_DIR": str(self.directory / ".cache" / "dvc"),
            "DVC_NO_ANALYTICS": "1",
        }
        self.said = run([str(self._tool.program), *words], self.directory, here)


class Dvc(_Peer):
    """A stage for each step, on whole directories."""

    setup = "dvc"

    def first(self) -> None:
        self._list_batches()
        self.type("init", "--no-scm")
        self.type("config", "cache.type", "hardlink,symlink")
        self.type("add", "images", "queries", "models")
        self.type("repro")

    def again(self) -> None:
        self._list_batches()
        self.type("repro")

    def _list_batches(self) -> None:
        batches = sorted(each.name for each in (self.directory / "images").iterdir())
        listed = "".join(f"  - '{each}'\n" for each in batches)
        (self.directory / "params.yaml").write_text(f"python: {sys.executable}\nbatches:\n{listed}")

    def steps(self) -> int:
        return stages_run(self.said)


class DvcInBatches(Dvc):
    """A stage for each batch and each segment."""

    setup = "dvc-batches"


class Snakemake(_Peer):
    """A job for each batch and each segment, with one core each."""

    setup = "snakemake"

    def first(self) -> None:
        self.again()

    def again(self) -> None:
        cores = len(os.sched_getaffinity(0))
        self.type("--cores", str(cores), "--config", f"python={sys.executable}")

    def steps(self) -> int:
        return jobs_run(self.said)


def stages_run(said: str) -> int:
    """The number of stages that `dvc repro` ran, according to its output."""
    return len(re.findall(r"^Running stage '", said, re.M))


def jobs_run(said: str) -> int:
    """The number of jobs that Snakemake ran, according to its output, without the empty target."""
    counted = re.findall(r"^(\d+) of \d+ steps \(100%\) done$", said, re.M)
    return int(counted[-1]) - 1 if counted else 0


def run(command: list[str], directory: Path, here: dict[str, str]) -> str:
    """The output of a program in a directory with further variables. Raises RuntimeError if it fails."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **here}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise RuntimeError(
            f"{Path(command[0]).name} ended with status {done.returncode}: {done.stdout.strip()[-2000:]}"
        )
    return done.stdout


def _parameters() -> dict[str, str]:
    """The stages' parameters, from the specifications."""
    return {name: value for spec in pipeline_specs.load() for name, value in spec.document["transform"]["env"].items()}
