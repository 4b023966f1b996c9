"""Named pipes in place of files, as Pachyderm serves lazy inputs: whoever opens one first gets what it holds."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path


def piped(pipe: Path, content: bytes, opened: Callable[[], None] = lambda: None) -> Path:
    """A pipe that holds this content. opened is called before the first byte is read."""

    def fill() -> None:
        with suppress(BrokenPipeError), pipe.open("wb") as end:  # a reader may refuse what it has read so far
            opened()
            end.write(content)

    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    threading.Thread(target=fill, daemon=True).start()
    return pipe


class Pipes:
    """The files of a directory as pipes in another one, and the names of those that were opened."""

    def __init__(self, files: Path, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.opened: list[str] = []
        for file in filter(Path.is_file, files.rglob("*")):
            name = file.relative_to(files).as_posix()
            piped(directory / name, file.read_bytes(), partial(self.opened.append, name))
