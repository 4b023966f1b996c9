"""The programs beside the service: `python -m benchmarks.service.httppeers bare`, a server that answers nothing;
`... flat DIR`, FAISS's flat index of the segments in DIR behind the same HTTP server, asked by id; and
`... passes DIR`, which measures the import of TensorFlow and the forward passes of the backbone in DIR."""

import importlib
import json
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kit.report import timed

_K = 12
_SECONDS = 6.0

Search = Callable[[Mapping[str, Any]], object]


def main(arguments: list[str]) -> None:
    """Runs one of the programs."""
    what, *place = arguments
    if what == "passes":
        _passes(Path(place[0]))
        return
    _serve((lambda _: {"neighbors": []}) if what == "bare" else _flat(Path(place[0])))


def _serve(search: Search) -> None:
    """Answers POST /search as the service does: FastAPI on uvicorn, the search in a thread."""
    fastapi, uvicorn = importlib.import_module("fastapi"), importlib.import_module("uvicorn")
    pool = importlib.import_module("starlette.concurrency").run_in_threadpool
    app = fastapi.FastAPI()

    async def answer(request: Any) -> Any:
        return fastapi.responses.JSONResponse(await pool(search, json.loads(await request.body())))

    answer.__annotations__["request"] = fastapi.Request
    app.post("/search")(answer)
    # Not create_server: asyncio sends without delay only on sockets that name their protocol.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    print(f"listening on 127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listening])


def _flat(index: Path) -> Search:
    faiss = importlib.import_module("faiss")
    tables, read = (
        importlib.import_module("stages.files.tables.index_table"),
        importlib.import_module("benchmarks.kit.segments"),
    )
    segments = sorted(path for path in index.iterdir() if path.is_dir())
    ids = [id for segment in segments for id in tables.IndexTable.read(segment / tables.TABLE).ids]
    rows = {id: row for row, id in enumerate(ids)}
    flat: Any = None
    for segment in segments:
        vectors = read.vectors(segment)
        flat = faiss.IndexFlatL2(vectors.shape[1]) if flat is None else flat
        flat.add(vectors)

    def search(asked: Mapping[str, Any]) -> object:
        point = flat.reconstruct(rows[asked["id"]])[None]
        distances, found = flat.search(point, _K)
        nearest = zip(found[0].tolist(), np.sqrt(distances[0]).tolist(), strict=True)
        return {"neighbors": [{"id": ids[row], "distance": distance} for row, distance in nearest]}

    return search


def _passes(models: Path) -> None:
    begun = time.perf_counter()
    tf = importlib.import_module("tensorflow")
    imported = time.perf_counter() - begun
    devices, backbones = (
        importlib.import_module("stages.backbone.devices"),
        importlib.import_module("stages.backbone.backbones"),
    )
    described = importlib.import_module("stages.backbone.backbone_spec")
    devices.prepare({})
    spec = described.parse_spec((models / described.SPEC_FILE).read_bytes())
    model = backbones.load_backbone(models / described.MODEL_FILE, spec)
    forward = tf.function(lambda some: model(some, training=False), autograph=False)
    batch = tf.constant(np.random.default_rng(0).integers(0, 256, (spec.batch, *[spec.image_size] * 2, 3), np.uint8))
    forward(batch).numpy()
    passes, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < _SECONDS:
        forward(batch).numpy()
        passes += 1
    taken = time.perf_counter() - begun
    print(
        json.dumps({"imported": imported, "rate": passes * spec.batch / taken, "decoding": _decoding(spec.image_size)})
    )


def _decoding(side: int) -> float:
    """Seconds of one core to decode and normalise an uploaded picture."""
    seen = importlib.import_module("stages.serving.answer.upload_decoder").seen
    framing = importlib.import_module("stages.record.framing").Framing(side, "pad")
    pictures = [*importlib.import_module("benchmarks.service.uploads").pictures()]
    return min(timed(lambda: [seen("", each, framing) for each in pictures]) for _ in range(3)) / len(pictures)


if __name__ == "__main__":
    main(sys.argv[1:])
