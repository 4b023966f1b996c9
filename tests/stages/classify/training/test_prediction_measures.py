"""Measures of predictions, compared with scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from stages.classify.training import prediction_measures
from stages.classify.training.prediction_measures import SplitPredictions
from stages.datum.contract import StageError
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT, PredictionTable

LABELS = ["a", "b", "c", "d"]


def made(own: list[int], predicted: list[int], held: list[bool], probabilities: list[float]) -> PredictionTable:
    return PredictionTable(
        ids=[f"{row:064x}" for row in range(len(own))],
        sources=[f"{row}.jpg" for row in range(len(own))],
        labels=[LABELS[each] for each in own],
        splits=[HELD_OUT if each else CROSS_VALIDATION for each in held],
        predicted=[LABELS[each] for each in predicted],
        probabilities=np.array(probabilities, np.float32),
        true_probabilities=np.array(probabilities, np.float32) / 2,
    )


pictures = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.floats(0, 1, width=32)), min_size=1, max_size=60
)


@given(pictures)
def test_measures_equal_those_of_scikit_learn(rows: list[tuple[int, int, bool, float]]) -> None:
    own, predicted, held, probabilities = (list(each) for each in zip(*rows, strict=True))
    found = prediction_measures.measure_run(made(own, predicted, held, probabilities), LABELS)
    validated = [row for row in rows if not row[2]]
    if not validated:
        assert found["cross_validation"] is None
        return
    own, predicted = [row[0] for row in validated], [row[1] for row in validated]
    precision, recall, f1, support = precision_recall_fscore_support(own, predicted, labels=range(4), zero_division=0)
    for row in found["per_label"]:
        code = LABELS.index(row["label"])
        assert row["pictures"] == support[code]
        assert (row["precision"] or 0) == pytest.approx(precision[code], abs=1e-6)
        assert (row["recall"] or 0) == pytest.approx(recall[code], abs=1e-6)
        assert (row["f1"] or 0) == pytest.approx(f1[code], abs=1e-6)
    macro = found["cross_validation"]["macro"]
    assert macro["f1"] == pytest.approx(f1[support > 0].mean(), abs=1e-6)
    assert found["matrix"]["rows"] == confusion_matrix(own, predicted, labels=range(4)).tolist()
    assert not found["matrix"]["others"]
    wrong = [row for row in rows if row[0] != row[1]]
    assert len(found["mistakes"]) == len(wrong)
    confident = [each["probability"] for each in found["mistakes"]]
    assert confident == sorted(confident, reverse=True)


def side(rows: list[tuple[int, int, float, float]]) -> SplitPredictions:
    own, predicted, probabilities, of_own = (np.array(each) for each in zip(*rows, strict=True))
    return SplitPredictions(own, predicted, probabilities, of_own)


def test_calibration_of_predictions_by_hand() -> None:
    given = side([(0, 0, 0.9, 0.9), (0, 0, 0.92, 0.92), (0, 1, 0.91, 0.09), (1, 1, 0.5, 0.5)])
    found = prediction_measures.totals(given, 2)
    assert found is not None
    assert [each["pictures"] for each in found["bins"]] == [1, 3]
    low, high = found["bins"]
    assert (low["accuracy"], low["probability"]) == (1.0, 0.5)
    assert (high["accuracy"], high["probability"]) == (pytest.approx(2 / 3, abs=1e-6), pytest.approx(0.91))
    assert found["ece"] == pytest.approx((0.5 + 3 * (0.91 - 2 / 3)) / 4, abs=1e-6)
    assert found["brier"] == pytest.approx((0.1**2 + 0.08**2 + 0.91**2 + 0.5**2) / 4, abs=1e-6)
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.92, 0.09, 0.5]).mean(), abs=1e-6)


def test_a_probability_of_zero_has_a_finite_loss() -> None:
    found = prediction_measures.totals(side([(0, 1, 1.0, 0.0)]), 2)
    assert found is not None
    assert (found["log_loss"], found["brier"], found["bins"][0]["to"]) == (pytest.approx(20.723266), 1.0, 1.0)


def test_many_labels_are_shown_by_those_that_are_confused_most() -> None:
    labels = [f"{number:02d}" for number in range(40)]
    rows = [(code, code, 0.9, 0.9) for code in range(40)] + [(39, 3, 0.8, 0.1)] * 5
    found = prediction_measures.matrix(side(rows), labels)
    assert len(found["labels"]) == prediction_measures.MOST_SHOWN
    assert {"03", "39"} <= {*found["labels"]}
    counts = np.array(found["rows"])
    assert found["others"] and counts.shape == (25, 25)
    assert counts.sum() == len(rows)
    assert counts[found["labels"].index("39"), found["labels"].index("03")] == 5
    assert counts[-1, -1] == 40 - prediction_measures.MOST_SHOWN


def test_a_label_that_the_run_does_not_have_is_refused() -> None:
    with pytest.raises(StageError, match="the predictions have the label 'd', which the run does not have"):
        prediction_measures.measure_run(made([0], [3], [False], [0.5]), LABELS[:3])
