"""A place on this machine where stages run on the files of one commit set, with the variables that its pipelines had:
files are fetched into a scratch directory, and each step is shown. Knows no question and no answers."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pipelines.analysis.stage_runs import StageDatum, run_pipeline
from pipelines.analysis.time_travel.past_library import PastLibrary
from pipelines.client.commit_tree import CommitTree
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from stages.datum.file_cache import FileCache

StepProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of a step with that name and total; gives a function to call with each increment."""


@dataclass(frozen=True, slots=True)
class StepDisplay:
    """The ways to show long work: counted steps, bytes that come from the server, and lines."""

    counting: StepProgress
    transferring: StepProgress
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StageWorkbench:
    """The commit set and the variables of its pipelines, the files that are kept, and the directory of all others."""

    connection: Connection
    past: PastLibrary
    store: FileCache
    scratch: Path
    steps: StepDisplay

    def run(self, pipeline: str, works: Sequence[StageDatum], **more: str) -> None:
        """Runs the stage of a pipeline with its variables and further ones. Raises LookalikeError with the stage's
        reason if a datum fails."""
        with self.steps.counting(pipeline, len(works)) as report:
            run_pipeline(pipeline, works, {**self.past.environments.get(pipeline, {}), **more}, report)

    def fetch(self, what: str, tree: CommitTree, files: Sequence[StoredFile], to: Path) -> Path:
        """Brings files of a commit below a directory, which is made, and returns it. what: they are, in words."""
        to.mkdir(parents=True, exist_ok=True)
        with self.steps.transferring(f"fetching {what}", sum(each.size for each in files)) as report:
            tree.place_all(self.store, files, to, report)
        return to
