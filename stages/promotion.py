"""The promotion stage: a candidate compared with the classifier in production, on pictures that neither has seen.

Runs on plain directories only, for `lookalike classify promote`: no pipeline can read its own older output. Inputs:
`candidate` and, if there is one, `current`, directories with the model.keras and labels.json of the stage select;
`candidate_models` and `current_models`, directories with the backbones that they stand on, which are needed where the
labelled pictures have the vectors of another one; `labelled`, the newest output of the stage labelled. Writes
/promotion.json.

Imports neither TensorFlow nor NumPy until all inputs are known to be there.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.promotion"))

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stages.backbone import keras_import
from stages.classify import classifier_description
from stages.classify.training.run_records import MODEL
from stages.datum.contract import Datum, DatumInput, StageError, load

if TYPE_CHECKING:
    from stages.classify.classifier_comparison import ClassifierPredictions

RESULT = "promotion.json"


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters of its own: the GPU settings are read with the first model."""

    def process(datum: Datum) -> None:
        datum.require("promotion needs candidate and labelled", "candidate", "labelled")
        names = [name for name in ("candidate", "current") if name in datum.inputs]
        described = {name: _described(datum.inputs[name]) for name in names}
        with keras_import.quiet():
            pictures_of = load("stages.classify.held_out_pictures")
            predictions = load("stages.classify.held_out_predictions")
            comparison = load("stages.classify.classifier_comparison")
        share = min(each.held_out_share for each in described.values())
        pictures = pictures_of.read(datum.inputs["labelled"].path, share)
        sides: dict[str, ClassifierPredictions] = {
            name: predictions.predict(
                datum.inputs[name].path,
                datum.inputs[f"{name}_models"].path if f"{name}_models" in datum.inputs else None,
                pictures,
                environment,
            )
            for name in names
        }
        found = comparison.compare_classifiers(pictures, sides["candidate"], sides.get("current"))
        text = json.dumps(found, indent=1, sort_keys=True)
        (datum.out / RESULT).write_text(text + "\n", encoding="ascii")
        print(f"promotion: {found['pictures']} pictures")

    return process


def _described(given: DatumInput) -> classifier_description.ClassifierDescription:
    for name in (MODEL, classifier_description.FILE):
        if not (given.path / name).is_file():
            raise StageError(f"the input {given.name} has no {name}: it should be a directory that select wrote")
    return classifier_description.parse((given.path / classifier_description.FILE).read_bytes())
