"""The annotations stage: what people state of the pictures of a segment, dealt from their tables and labels.

Inputs: `features`, the directory /library/<segment> of partition; `labels` and `attributes`, whole repos, lazy or not.
Writes /annotations/<segment>.parquet (stages.files.tables.annotation_table), with the attributes of the files of the
segment's pictures and their labels; and /labels/<segment>.parquet, in the same form, with the labels to train on alone,
and a row without one for a file that has several. A segment of which nothing is stated has tables without rows, and
one whose files no change names keeps equal bytes. Reads no vectors and no pixels.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.annotations"))

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from stages.datum.contract import Datum, DatumInput
from stages.datum.input_cache import InputCache
from stages.files.attribute_files import read_attributes
from stages.files.tables.annotation_table import PATH, stated_only, write_annotations
from stages.files.tables.image_table import read_sources
from stages.files.tables.parquet import true_text
from stages.quality.picture_labels import label_contents
from stages.record.attribute_schema import LABEL
from stages.record.label_files import is_for_training, unite

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

ANNOTATIONS, LABELS = "annotations", "labels"
"""The directories of the output."""

SUFFIX = ".parquet"


class RepoLabels(NamedTuple):
    """The labels in a repo, by the true names of files. training: those to train on, None for a file that has several.
    shown: for people, one to train on where there is one."""

    training: Mapping[str, str | None]
    shown: Mapping[str, str]


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters. Keeps labels and tables, which all datums of a commit share."""
    labels = InputCache(_labels)
    attributes = InputCache(lambda each: read_attributes(each.path))

    def process(datum: Datum) -> None:
        datum.require(
            "annotations needs /library/<segment> of partition, labels and attributes",
            *("features", "labels", "attributes"),
        )
        features = datum.inputs["features"]
        segment = Path(features.repo_path).name
        paths = _paths(features.path)
        names = [true_text(each) for each in paths.to_pylist()]
        given = labels.get(datum.inputs["labels"])
        columns = attributes.get(datum.inputs["attributes"]).of(paths)
        stated = stated_only(pa.table({PATH: paths, **columns, LABEL: _column(names, given.shown)}))
        training = pa.table({PATH: paths, LABEL: _column(names, given.training)})
        known = training.filter(pa.array([each in given.training for each in names], pa.bool_()))
        for directory, table in ((ANNOTATIONS, stated), (LABELS, known)):
            target = datum.out / directory / f"{segment}{SUFFIX}"
            target.parent.mkdir(parents=True, exist_ok=True)
            write_annotations(table, target)
        print(f"annotations: {len(stated)} of {len(paths)} files of {segment} have attributes or labels")

    return process


def _labels(repo: DatumInput) -> RepoLabels:
    files = [*label_contents(repo.path)]
    training, others = (unite(each for each in files if is_for_training(each[0]) == used) for used in (True, False))
    only_shown = {source: label for source, label in others.of.items() if source not in training.conflicts}
    return RepoLabels({**dict.fromkeys(training.conflicts), **training.of}, {**only_shown, **training.of})


def _column(names: Sequence[str], labels: Mapping[str, str | None]) -> pa.Array:
    """The labels of files, null for those without one."""
    return pa.array([labels.get(each) for each in names], pa.string())


def _paths(segment: Path) -> pa.Array:
    """The stored paths of all files of a segment's pictures, each once. Raises StageError for other tables."""
    found = [read_sources(file).stored_paths for file in sorted(segment.glob(f"*{SUFFIX}"))]
    return pc.unique(pa.concat_arrays(found)) if found else pa.array([], pa.string())
