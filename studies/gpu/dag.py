"""The whole search, from pictures to answers, on a localpachd whose GPU pipelines take turns on the card, and its
answers beside those of the processor. Needs lookalike's own packages; stages without TensorFlow's or cuML's packages
for GPUs compute on the processor, and say so."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.library.datasets import samples
from studies.gpu import notebook
from studies.gpu.notebook import REHEARSAL, Notebook, timed

Answers = dict[tuple[str, int], tuple[str, float]]
"""The neighbour and its distance by the query's name and the neighbour's rank."""

_PICTURES = 40 if REHEARSAL else 10_000
_LISTED = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"]


def dag(notes: Notebook) -> None:
    """The sample pictures and queries, once with the card and once without."""
    with tempfile.TemporaryDirectory(prefix="lookalike-gpu-") as scratch:
        home = Path(scratch)
        made = samples.write_samples(home / "pictures")
        for path in sorted(made.library.iterdir())[_PICTURES:]:
            path.unlink()
        card, processor = (_answers(notes, home, name, gpus) for name, gpus in (("card", "1"), ("processor", "0")))
    same = [card[each][0] == processor[each][0] for each in processor]
    notes.note("neighbours", {"of the processor": len(processor), "of the card": len(card), "the same": sum(same)})
    further = [abs(card[each][1] - processor[each][1]) for each in processor if each in card]
    notes.note("distances of equal rank differ by at most", max(further, default=None))


def _answers(notes: Notebook, home: Path, name: str, gpus: str) -> Answers:
    """The answers of a new library with so many GPUs. Adding and asking begin at the same time, so that features of
    pictures and of queries want the card at once."""
    place = home / name
    place.mkdir()
    cuml = gpus != "0" and importlib.util.find_spec("cuml") is not None
    _run(place, "up", "--port", "0", "--gpus", gpus)
    try:
        _run(place, "deploy", "--set", f"BACKEND={'cuml' if cuml and not REHEARSAL else 'auto'}")
        _run(place, "model", "push", "efficientnet-lite0")
        with _watched(notes, name):
            _run(place, "add", "--yes", "--no-wait", str(home / "pictures" / samples.LIBRARY))
            seconds, (answer, said) = timed(
                lambda: _run(place, "query", "--json", str(home / "pictures" / samples.QUERIES))
            )
        notes.note(f"{name}: asked beside the pictures' pass, s", round(seconds, 1))
        notes.note(f"{name}: turns", [line for line in said.split("\n") if "waiting for a GPU" in line])
        notes.note(f"{name}: status", _run(place, "status")[0][-3000:])
    finally:
        _run(place, "down")
    found: Answers = {}
    asked: Any = json.loads(answer)
    for row in asked["sheets"][0]["queries"]:
        for rank, near in enumerate(row["neighbors"]):
            found[row["query"], rank] = near["id"], near["distance"]
    return found


@contextmanager
def _watched(notes: Notebook, name: str) -> Iterator[None]:
    """Notes the most processes that were on the card at once, and their memory then."""
    most, over = list[str](), threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.2):
            listed = subprocess.run(_LISTED, capture_output=True, text=True).stdout.split("\n")
            most = max(most, [line for line in listed if line], key=len)

    thread = threading.Thread(target=watch, daemon=True)
    if not REHEARSAL:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if not REHEARSAL:
            thread.join()
        notes.note(f"{name}: the most processes on the card at once", most)


def _run(place: Path, *arguments: str) -> tuple[str, str]:
    """The output and the messages of a command of lookalike in a directory. Raises RuntimeError with the messages."""
    environment = {**os.environ, "LOOKALIKE_ROOT": str(place / ".lookalike")}
    command = [sys.executable, "-P", "-m", "pipelines.cli", *arguments]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"lookalike {' '.join(arguments)}: {done.stderr[-2000:]}")
    return done.stdout, done.stderr


if __name__ == "__main__":
    sys.exit(notebook.main({"dag": dag}))
