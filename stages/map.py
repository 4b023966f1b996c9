"""The map stage: the places of a segment's pictures on the map, from their vectors and the layout alone.

Inputs: `index`, the directory of a segment; `layouts`, the whole repo. Lazy or not. Writes /<segment>.parquet
(stages.files.tables.map_table). With a layout of another model, metric or kind of vectors than the segment it says so
there and in the log, and places nothing: a later layout brings the map back, and no job has failed.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.map"))

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from stages.datum.contract import Datum, StageError
from stages.datum.input_cache import InputCache
from stages.datum.text_format import counted
from stages.files import segment_files
from stages.files.layout_files import FIT, Layout, read_layout
from stages.files.segment_files import SegmentFacts
from stages.files.tables.map_table import SUFFIX, MapTable
from stages.knn.vector_set import VectorSet
from stages.quality.map_placement import place

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters. Keeps the layout, which all datums of a commit share."""
    layouts = InputCache(lambda each: read_layout(each.path))

    def process(datum: Datum) -> None:
        datum.require("map needs a segment of the index and the repo layouts", "index", "layouts")
        index, layout = datum.inputs["index"], layouts.get(datum.inputs["layouts"])
        if layout is None:
            raise StageError(f"the repo layouts holds no layout: {FIT}")
        name, facts, images = (
            Path(index.repo_path).name,
            segment_files.read_facts(index),
            segment_files.read_table(index),
        )
        stale = _stale(layout, facts)
        if stale:
            table = MapTable(ids=[], x=[], y=[], clusters=[], origin=facts.origin, stale=stale)
        else:
            vectors = segment_files.read_points(index, images.vectors, facts.origin.dimension)
            positions, clusters = place(layout, VectorSet(vectors, layout.metric, images.ids).prepared)
            x, y = np.ascontiguousarray(positions.T)
            table = MapTable(ids=images.ids, x=x, y=y, clusters=clusters, origin=facts.origin)
        table.write(datum.out / f"{name}{SUFFIX}")
        print(f"map: {name}: {stale or counted(len(table), 'picture', 'pictures')}")

    return process


def _stale(layout: Layout, facts: SegmentFacts) -> str:
    """Why the layout is not of the segment's vectors, "" if it is."""
    if reason := layout.origin.mismatch(facts.origin, "the layout", "the index"):
        return f"{reason} To map the library again, {FIT}"
    if layout.metric != facts.metric:
        return f"the layout is of {layout.metric} distances, the index of {facts.metric} ones. To map it again, {FIT}"
    return ""
