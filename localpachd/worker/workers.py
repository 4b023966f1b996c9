"""A worker: a directory of its own, a workplace in it, and the session of its batched process. Starts nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localpachd.worker.batch_session import BatchSession
from localpachd.worker.layout.tree_removal import remove
from localpachd.worker.tasks import Task
from localpachd.worker.workplace import Workplace


@dataclass(frozen=True, slots=True, eq=False)
class Worker:
    """One worker of a task. `state` is that of all that its processes have read once (`Backend.state`), "" if they are
    not to be kept."""

    task: Task
    directory: Path
    workplace: Workplace
    session: BatchSession
    state: str

    def close(self, complain: Callable[[str], None]) -> None:
        """Ends the process and releases all else; `complain` is told of what cannot be removed."""
        try:
            self.session.stop()
        finally:
            try:
                self.workplace.close()
            finally:
                remove_worker_directory(self.directory, complain)


def remove_worker_directory(directory: Path, complain: Callable[[str], None]) -> None:
    """Removes the directory of a worker."""
    try:
        remove(directory)
    except OSError as failure:  # the next start tries again
        complain(f"cannot remove the worker's directory: {failure}")
