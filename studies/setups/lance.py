"""LanceDB's searches within a filter: `PYTHON lance.py DIRECTORY WHERE K`, in an environment with lancedb.

The directory has part-*.npy, the vectors in order, labels.json and points.npy. Prints JSON: for each way to search the
rows found for each point, and the seconds that each took.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lancedb  # type: ignore[import-not-found]
import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, IvfPq  # type: ignore[import-not-found]


def main(directory: Path, where: str, k: int) -> None:
    labels = json.loads((directory / "labels.json").read_text())

    def batches() -> Iterator[Any]:
        first = 0
        for part in sorted(directory.glob("part-*.npy")):
            vectors = np.load(part, mmap_mode="r")
            for start in range(0, len(vectors), 10_000):
                some = np.ascontiguousarray(vectors[start : start + 10_000])
                rows = np.arange(first, first + len(some))
                flat = pa.FixedSizeListArray.from_arrays(pa.array(some.reshape(-1)), some.shape[1])
                own = pa.array(labels[first : first + len(some)])
                yield pa.record_batch({"row": pa.array(rows), "label": own, "vector": flat})
                first += len(some)

    first = next(batches())
    database = lancedb.connect(directory / "database")
    table = database.create_table("pictures", batches(), schema=first.schema)
    points = np.load(directory / "points.npy")
    found = {"LanceDB, no index": asked(table, points, where, k)}
    # By default a million pictures have 1,000 partitions, which take half an hour.
    table.create_index("vector", config=IvfPq(distance_type="l2", num_partitions=256))
    found["LanceDB, IVF_PQ"] = asked(table, points, where, k)
    table.create_index("label", config=Bitmap())
    found["LanceDB, IVF_PQ, bitmap of labels"] = asked(table, points, where, k)
    print(json.dumps(found))


def asked(table: Any, points: Any, where: str, k: int) -> tuple[list[list[int]], list[float]]:
    found: list[list[int]] = []
    times: list[float] = []
    for number, point in enumerate([points[0], *points]):
        start = time.perf_counter()
        rows = (
            table.search(point, "vector").where(where, prefilter=True).limit(k).select(["row", "_distance"]).to_arrow()
        )
        if number:  # the first is not counted
            times.append(time.perf_counter() - start)
            found.append(rows["row"].to_pylist())
    return found, times


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
