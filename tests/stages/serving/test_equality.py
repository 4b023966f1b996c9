"""The answers of the service over HTTP are those of the batch stages to the last digit, over the sample set, of which
`make test` takes a part.

All stages run as in production, from the files of the pictures to neighbors.jsonl; the service decodes, computes and
searches for itself, and shares with them the index alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.library.datasets import samples
from stages import features, index, partition, preprocess, render, search
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, parse_spec
from stages.datum import contract
from stages.datum.contract import Datum, DatumInput
from stages.knn.search_settings import METRICS, SearchSettings
from stages.record import entry_paths
from stages.serving.search.search_engine import SearchEngine
from tests.file_schedule import everything
from tests.stages.serving import services
from tests.stages.serving.segments import open_library
from tests.stages.serving.services import Service

if TYPE_CHECKING:  # TensorFlow takes seconds
    from stages.backbone.embedder import Embedder

pytestmark = pytest.mark.timeout(300)

SIZE, K, ENTRY = 96, 10, "sample-queries"
CPU = {"CUDA_VISIBLE_DEVICES": ""}
BACKENDS = ("auto", "numpy", "faiss", "sklearn")
CLIENTS = 8

Answers = dict[str, list[tuple[str, float, list[str]]]]
"""For each query's path the ids, distances and paths of its neighbours, in order."""


@dataclass(frozen=True)
class Pipelines:
    """The directories of all files up to the index, and the files of the queries by their paths."""

    place: Path
    models: Path
    queries: Mapping[str, bytes]

    @property
    def segments(self) -> list[Path]:
        return sorted((self.place / "index").iterdir())

    def answers(self, metric: str, backend: str) -> Answers:
        """Those of search and render, read from neighbors.jsonl."""
        out = self.place / f"{metric}-{backend}"
        entry = self.place / "features" / entry_paths.directory(ENTRY)
        bucket = DatumInput("queries", entry.parent, f"queries/{entry.parent.name}", "")
        stage = search.start(CPU | {"METRIC": metric, "BACKEND": backend, "K": str(K)})
        for segment in self.segments:
            run(stage, out, DatumInput("index", segment, segment.name, ""), bucket)
        sides = (
            DatumInput("queries", entry, entry_paths.directory(ENTRY), ""),
            DatumInput("search", out / ENTRY, ENTRY, ""),
        )
        run(render.start({"K": str(K)}), out / "render", *sides)
        lines = map(json.loads, (out / "render" / ENTRY / "neighbors.jsonl").read_text().splitlines())
        return {
            path: [(each["id"], each["distance"], each["sources"]) for each in line["neighbors"]]
            for line in lines
            for path in line["sources"]
        }


def run(stage: Callable[[Datum], None], out: Path, *inputs: DatumInput) -> None:
    stage(Datum({each.name: each for each in inputs}, out))


def joined(directory: Path, **others: Path) -> list[DatumInput]:
    """The inputs of a directory of /library, and of those of the same name in other directories."""
    name = directory.name
    paired = [DatumInput(kind, place / name, f"{kind}/{name}", "") for kind, place in others.items()]
    return [DatumInput("features", directory, f"library/{name}", ""), *paired]


@pytest.fixture(scope="module")
def pipelines(lite0: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pipelines:
    """The sample set, or every third picture of it; a few pictures of the library are queries, too."""
    place = tmp_path_factory.mktemp("equality")
    made = samples.write_samples(place / "files")
    if not everything(request.config):
        for directory in (made.library, made.queries):
            for number, path in enumerate(sorted(directory.iterdir())):
                if number % 3:
                    path.unlink()
    for path in sorted(made.library.iterdir())[::60]:
        (made.queries / f"known {path.name}").write_bytes(path.read_bytes())

    normalised = preprocess.start({"IMAGE_SIZE": str(SIZE)})
    run(normalised, place / "packs", DatumInput("images", made.library, samples.LIBRARY, ""))
    run(normalised, place / "packs", DatumInput("queries", made.queries, ENTRY, ""))
    computed, models = features.start({}), DatumInput("models", lite0, "", "one")
    for kind in ("library", "queries"):
        for part in sorted((place / "packs" / kind).iterdir()):
            run(computed, place / "features", models, DatumInput("pictures", part, f"{kind}/{part.name}", "one"))
    dealt, indexed = partition.start({}), index.start({"K": str(K)})
    for bucket in sorted((place / "features" / "library").iterdir()):
        run(dealt, place / "partition", *joined(bucket, thumbnails=place / "packs" / "thumbnails"))
    kinds = {kind: place / "partition" / kind for kind in ("vectors", "thumbnails")}
    for segment in sorted((place / "partition" / "library").iterdir()):
        run(indexed, place / "index", *joined(segment, **kinds))
    return Pipelines(place, lite0, {f"{ENTRY}/{path.name}": path.read_bytes() for path in made.queries.iterdir()})


@pytest.fixture(scope="module")
def embedder(pipelines: Pipelines) -> Embedder:
    """Loaded as the service loads it."""
    spec = parse_spec((pipelines.models / SPEC_FILE).read_bytes())
    found: Embedder = contract.load("stages.backbone.embedder_factory").embedder(
        pipelines.models / MODEL_FILE, spec, {}
    )
    return found


def asked(service: Service, question: Mapping[str, Any], files: list[bytes]) -> Mapping[str, Any]:
    answer = service.search(question, files)
    assert answer.status == 200, answer.body
    found: Mapping[str, Any] = answer.data
    return found


def listed(answer: Mapping[str, Any]) -> list[tuple[str, float, list[str]]]:
    """The K nearest; an answer has more where some are near-duplicates."""
    nearest = answer["neighbors"][:K]
    return [(each["id"], each["distance"], [source["path"] for source in each["sources"]]) for each in nearest]


@pytest.mark.parametrize(
    ("backend", "metric"),
    [
        pytest.param(backend, metric, marks=[] if (place + other) % 2 == 0 else [pytest.mark.only_in_all])
        for place, backend in enumerate(BACKENDS)
        for other, metric in enumerate(METRICS)
    ],
)
def test_the_service_answers_as_the_batch_pipelines(
    backend: str, metric: str, pipelines: Pipelines, embedder: Embedder
) -> None:
    expected = pipelines.answers(metric, backend)
    assert expected.keys() == pipelines.queries.keys()
    assert {len(each) for each in expected.values()} == {K}
    held = open_library(pipelines.segments)
    with_backend = SearchEngine(held, SearchSettings(metric=metric, backend=backend), CPU)
    assert with_backend.prepared(60)
    made = services.snapshot(held, embedder, pipelines.place / "cache")
    made = replace(made, searching=with_backend, device=embedder.device)
    with services.running(made) as service, ThreadPoolExecutor(CLIENTS) as clients:

        def both(path: str) -> None:
            """Asks for a file, and a library picture also by its id."""
            answer = asked(service, {"k": K, "metric": metric}, [pipelines.queries[path]])
            assert listed(answer) == expected[path], path
            assert answer["devices"] == {"index": [made.device], "service": made.device}
            (picture,) = answer["pictures"]
            assert picture["known"] == path.startswith(f"{ENTRY}/known ")
            if picture["known"]:
                assert answer["neighbors"][0]["id"] == picture["id"]
                again = asked(service, {"k": K, "metric": metric, "id": picture["id"]}, [])
                assert listed(again) == expected[path], path

        assert len(list(clients.map(both, sorted(pipelines.queries)))) == len(expected)
