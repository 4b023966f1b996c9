"""The map beside umap-learn alone, and its frames beside an empty canvas: `python -m studies.map --help`.

Both sides lay out the same made vectors, each in a process of its own with one thread: the processor time and the
peak memory of the process beyond the vectors' own, and scikit-learn's trustworthiness of both maps, over the same
pictures. `--frames N` draws a map of N points in headless Chromium, which renders in software, and moves and zooms it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.kit import program, report
from stages.serving.search.map_points import MapPoints

PACKAGES = ("numpy", "scikit-learn", "umap-learn", "numba", "pynndescent")
SIDES = ("ours", "umap")

_LATENT, _DIMENSION = 24, 256
_JUDGED, _NEIGHBOURS = 5000, 15
_STEPS = 120  # frames that are measured
_PAGE = Path(__file__).parents[1] / "stages" / "serving" / "page" / "map"
_HTML = """<!doctype html><style>body { margin: 0 } canvas { width: 1200px; height: 720px }</style><canvas></canvas>
<script type="module">import { MapCanvas } from "/map-canvas.js";
const load = async (z, x, y) => (await fetch(`/tile/${z}/${x}/${y}`)).json();
window.map = new MapCanvas(document.querySelector("canvas"), { load, hover() {}, pick() {}, chosen() {} });</script>"""
_FRAMES = """async ([steps, empty]) => { const canvas = document.querySelector("canvas");
  const context = canvas.getContext("2d");
  const frame = () => new Promise(requestAnimationFrame), drawing = [], between = [];
  let before = await frame();
  for (let at = 0; at < steps; at += 1) {
    const begun = performance.now();
    if (empty) context.clearRect(0, 0, canvas.width, canvas.height);
    else { map.zoom(at < steps / 2 ? 1.05 : 1 / 1.05, 600 + at, 360); map.draw(); }
    drawing.push(performance.now() - begun);
    const now = await frame();
    between.push(now - before);
    before = now;
  }
  return [drawing, between]; }"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures of both sides, and of the frames."""
    parser = argparse.ArgumentParser(prog="studies.map", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=program.positive, default=100_000)
    parser.add_argument("--sample", type=program.positive, default=10_000, help="of the layout")
    parser.add_argument("--frames", type=int, default=1_000_000, metavar="N", help="points of the frames; 0 for none")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    program.exit_on_sigterm()
    if given.side:
        return _lay_out(given.side, given.pictures, given.sample, given.out)
    machine, used = report.machine(), report.versions(PACKAGES)
    print(report.place(machine, used, report.commit()))
    if given.pictures > 1:
        _compare(given.pictures, given.sample)
    if given.frames:
        _draw(given.frames)
    return 0


def made(count: int) -> NDArray[np.float32]:
    """Vectors as of rectified features, around 300 kinds in 40 groups."""
    chance = np.random.default_rng(1)
    groups = 2 * chance.normal(size=(40, _LATENT))
    kinds = groups[chance.integers(40, size=300)] + chance.normal(size=(300, _LATENT))
    shown = kinds[chance.integers(300, size=count)] + 0.6 * chance.normal(size=(count, _LATENT))
    noise = 0.3 * chance.normal(size=(count, _DIMENSION))
    return np.maximum(shown @ chance.normal(size=(_LATENT, _DIMENSION)) + noise, 0).astype(np.float32)


def _compare(pictures: int, sample: int) -> None:
    from sklearn.manifold import trustworthiness

    vectors = made(pictures)
    judged = np.random.default_rng(2).permutation(pictures)[:_JUDGED]
    environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")}
    for side in SIDES:
        with tempfile.TemporaryDirectory(prefix="lookalike-map-") as scratch:
            out = Path(scratch)
            given = [f"--pictures={pictures}", f"--sample={sample}", f"--side={side}", f"--out={out}"]
            subprocess.run([sys.executable, "-P", "-m", "studies.map", *given], check=True, env=environment)
            figures = json.loads((out / "figures.json").read_text())
            positions = np.load(out / "positions.npy")
        trust = trustworthiness(vectors[judged], positions[judged], n_neighbors=_NEIGHBOURS)
        print(
            json.dumps({"side": side, "pictures": pictures, **figures, "trustworthiness": round(trust, 4)}), flush=True
        )


def _lay_out(side: str, pictures: int, sample: int, out: Path) -> int:
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # as the stage layout has it
    import umap

    from stages import layout, map as map_stage
    from stages.record.origin import Origin

    vectors = made(pictures)
    before, begun = _peak(), time.process_time()
    if side == "umap":
        found = umap.UMAP(n_neighbors=15, min_dist=0.3, random_state=0, n_jobs=1).fit_transform(vectors)
        figures = {}
    else:
        ids = np.array([b"%064x" % row for row in range(min(sample, pictures))])
        origin = Origin("made", "pad", 224, _DIMENSION, "made")
        fitted = layout.fit(ids, vectors[: len(ids)], origin, "euclidean", 0, {})
        figures = {"fit_seconds": round(time.process_time() - begun, 1), "clusters": len(fitted.facts["clusters"])}
        found, _ = map_stage.place(fitted, vectors)
    seconds = time.process_time() - begun
    peak = _peak()
    np.save(out / "positions.npy", np.asarray(found, np.float32))
    more = {
        "seconds": round(seconds, 1),
        "peak_mib": round(peak / 1024),
        "beyond_vectors_mib": round((peak - before) / 1024),
    }
    (out / "figures.json").write_text(json.dumps({**figures, **more}))
    return 0


def _peak() -> int:
    """The most memory that this process has had, in KiB; that of getrusage begins with its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


class _Handler(BaseHTTPRequestHandler):
    """The page, the canvas's module and tiles of points."""

    def __init__(self, points: MapPoints, *given: object) -> None:
        self._points = points
        super().__init__(*given)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        kind, content = "text/html", _HTML.encode()
        if self.path.endswith(".js"):
            kind, content = "text/javascript", (_PAGE / Path(self.path).name).read_bytes()
        elif self.path.startswith("/tile/"):
            z, x, y = map(int, self.path.split("/")[2:])
            kind, content = "application/json", json.dumps(self._points.tile(z, x, y)).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _draw(count: int) -> None:
    from playwright.sync_api import sync_playwright

    chance = np.random.default_rng(3)
    spots = chance.uniform(-0.9, 0.9, (300, 2))
    places = np.clip(spots[chance.integers(300, size=count)] + 0.03 * chance.normal(size=(count, 2)), -1, 1)
    begun = time.process_time()
    points = MapPoints(places.astype(np.float32), chance.integers(40, size=count).astype(np.int32), np.arange(count))
    opened = time.process_time() - begun
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, points))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 720})
        page.goto(f"http://127.0.0.1:{server.server_port}")
        page.wait_for_function("window.map")
        page.evaluate(_FRAMES, [_STEPS, False])  # brings the tiles
        page.wait_for_load_state("networkidle")
        for what, empty in (("empty canvas", True), ("map", False), ("empty canvas", True), ("map", False)):
            drawing, between = page.evaluate(_FRAMES, [_STEPS, empty])
            figures = {
                "draw_ms_median": round(statistics.median(drawing), 2),
                "draw_ms_p95": round(statistics.quantiles(drawing, n=20)[-1], 2),
                "frame_ms_median": round(statistics.median(between), 2),
                "frame_ms_p95": round(statistics.quantiles(between, n=20)[-1], 2),
            }
            print(
                json.dumps({"frames": what, "points": count, "opened_seconds": round(opened, 2), **figures}), flush=True
            )
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
