"""Labels for pictures from their vectors, for the command: what a classifier takes the pictures of query entries for.

Runs on plain directories only. Inputs: `classifier`, a directory with model.keras and labels.json; `vectors`, a
directory with the vectors.npy and images.parquet of a query entry, as features-queries wrote them. Writes classes.json:
for each source its labels with their probabilities, the most probable first.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.label_vectors"))

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stages.backbone import keras_import
from stages.datum.contract import Datum, StageError, load
from stages.files.tables.image_table import ImageTable
from stages.files.vector_files import read_vectors

FILE = "classes.json"
MOST = 3
"""Most labels of a picture."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters."""
    with keras_import.quiet():
        classifier = load("stages.classify.classifier")

    def process(datum: Datum) -> None:
        opened = classifier.open(datum.inputs["classifier"].path)
        found = labelled(opened, datum.inputs["vectors"].path)
        (datum.out / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="ascii")

    return process


def labelled(classifier: Any, directory: Path) -> list[dict[str, Any]]:
    """The labels of each source in an entry, as JSON values. classifier: a stages.classify.classifier.Classifier.

    Raises StageError if it does not take vectors, or those of another backbone.
    """
    if classifier.chosen.takes != "vectors":
        raise StageError("this classifier takes pictures, not vectors: ask it with `lookalike classify serve`")
    images = ImageTable.read(directory / "images.parquet")
    if images.origin.computed_by != classifier.chosen.origin.computed_by:
        raise StageError(
            f"the classifier stands on the backbone {classifier.chosen.origin.named}, and the vectors come from "
            f"{images.origin.named}: train again, or push that backbone"
        )
    probabilities = classifier(read_vectors(directory / "vectors.npy", images.origin.dimension)[:])
    found = []
    for row, sources in zip(probabilities, images.sources, strict=True):
        best = sorted(range(len(row)), key=lambda at: (-row[at], at))[:MOST]
        labels = [{"label": classifier.chosen.labels[at], "probability": round(float(row[at]), 6)} for at in best]
        found += [{"source": source.path, "labels": labels} for source in sources]
    return sorted(found, key=lambda each: str(each["source"]))
