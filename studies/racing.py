"""Owns the race of lookalike and its peers: the steps and their order, their times, and whether all give the same
answers. Knows neither tools nor tables."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path

from PIL import Image

from benchmarks.kit.report import timed
from pipelines.library.datasets import samples
from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from studies.workflows import ENTRY, Workflow

OURS = "ours"
ACTS = ("add", "again", "remove")
"""The steps of each round, in this order, after a first run: see Workflow."""

BATCH = 400
"""The most pictures in a batch: as many as a block of `lookalike add` holds."""

QUERIES = 20

Make = Callable[[Path], Workflow]
"""Makes a workflow in a directory of its own."""

Answers = Mapping[str, Sequence[tuple[str, float]]]


@dataclass(slots=True)
class Found:
    """The results. By (act, name), the first run included: the least seconds of all rounds, and the steps of the last.
    By name: the MiB on disk at the end, the reason of a failure, and the act after which the answers differed from
    ours."""

    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    steps: dict[tuple[str, str], int] = field(default_factory=dict)
    disk: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    differing: dict[str, str] = field(default_factory=dict)


def race(makers: Mapping[str, Make], inputs: Path, rounds: int, acts: Sequence[str]) -> Found:
    """Has every workflow run from nothing, then do the named ACTS in each round, with new pictures each time. A
    workflow that fails is left out from then on. Raises RuntimeError if that is OURS, which must be among them."""
    found = Found()
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, ExitStack() as stack:
        running = {
            name: stack.enter_context(closing(make(Path(scratch) / name.replace(" ", "-"))))
            for name, make in makers.items()
        }
        for act, number in [("first", 0), *((act, number) for number in range(rounds) for act in acts)]:
            said = {}
            for name in list(running):
                print(f"  round {number + 1}, {act}: {name}", file=sys.stderr, flush=True)
                try:
                    _take(found, act, name, running[name], _doing(running[name], act, inputs, number))
                    said[name] = (running[name].sheet() / "neighbors.jsonl").read_text()
                except (RuntimeError, OSError) as error:
                    if name == OURS:
                        raise
                    print(f"  {name} fails and is left out: {error}", file=sys.stderr, flush=True)
                    found.failed[name] = str(error)
                    del running[name]
            _compare(found, act, said)
        found.disk = {name: each.disk() for name, each in running.items()}
    return found


def _doing(workflow: Workflow, act: str, inputs: Path, number: int) -> Callable[[], None]:
    if act == "add":
        return partial(workflow.add, sorted((inputs / "new").iterdir())[number])
    if act == "remove":
        name = sorted((inputs / "images").glob("*/*"))[number]
        return partial(workflow.remove, name.relative_to(inputs / "images").as_posix())
    return workflow.first if act == "first" else workflow.again


def _take(found: Found, act: str, name: str, workflow: Workflow, work: Callable[[], None]) -> None:
    seconds = timed(work)
    found.seconds[act, name] = min(seconds, found.seconds.get((act, name), seconds))
    found.steps[act, name] = workflow.steps()


def _compare(found: Found, act: str, said: Mapping[str, str]) -> None:
    """Notes the workflows whose answers differ from ours."""
    right = answers(said[OURS])
    for name, text in said.items():
        if answers(text) != right:
            found.differing.setdefault(name, act)


def answers(text: str) -> Answers:
    """The ids and distances of each query's neighbours, in the order of neighbors.jsonl."""
    lines = map(json.loads, text.splitlines())
    return {line["query"]: [(each["id"], each["distance"]) for each in line["neighbors"]] for line in lines}


def write_inputs(directory: Path, pictures: int, more: int) -> None:
    """Crops pictures from the sample photographs: `pictures` of them as images/<batch>/<name>, `more` others as
    new/<name>, and queries/<ENTRY>/<name>. All are JPEG, like photographs."""
    crops = _crops("library", samples.library_crops)
    for number, (name, crop) in enumerate(islice(crops, pictures)):
        _save(crop, directory / "images" / f"{number // BATCH:03d}" / name)
    for name, crop in islice(crops, more):
        _save(crop, directory / "new" / name)
    for name, crop in islice(_crops("query", samples.query_crops), QUERIES):
        _save(crop, directory / "queries" / ENTRY / name)


def _crops(
    kind: str, crops_of: Callable[[Image.Image, str, int], Iterator[Image.Image]]
) -> Iterator[tuple[str, Image.Image]]:
    for seed in count():
        for label in PHOTOGRAPHS:
            for number, crop in enumerate(crops_of(open_photograph(label), label, seed)):
                yield f"{kind}-{label}-{seed}-{number:02d}.jpg", crop


def _save(crop: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    crop.save(path, "JPEG", quality=samples.JPEG_QUALITY)
