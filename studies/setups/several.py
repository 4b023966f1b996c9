"""Runs a stage once for each match of a pattern, in one process: `several.py MODULE --input NAME=ROOT::PATTERN …`.

Users of a tool with one command for a whole directory write such a program, so that Python, TensorFlow and the model
are loaded once. The stages are the same; a datum is one combination of the inputs' matches, as in a cross of Pachyderm,
or with --join the matches of one name, as in a join.
"""

import argparse
import importlib
import itertools
import os
from pathlib import Path

from stages.datum.contract import Datum, DatumInput


def main() -> None:
    """Reads the command line. Inputs without a match give no datum; the directory for outputs is created anyway."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--input", action="append", required=True, metavar="NAME=ROOT::PATTERN")
    parser.add_argument("--join", action="store_true")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    matches = list(map(_matches, given.input))
    datums = _joined(matches) if given.join else list(itertools.product(*matches))
    if not datums:
        return
    process = importlib.import_module(given.module).start(os.environ)
    for inputs in datums:
        process(Datum({each.name: each for each in inputs}, given.out.absolute()))


def _joined(matches: list[list[DatumInput]]) -> list[tuple[DatumInput, ...]]:
    """The matches of each name; a name that an input lacks gives no datum."""
    by_name = [{each.path.name: each for each in some} for some in matches]
    names = sorted(set.intersection(*map(set, by_name)))
    return [tuple(each[name] for each in by_name) for name in names]


def _matches(argument: str) -> list[DatumInput]:
    name, _, place = argument.partition("=")
    root, _, pattern = place.partition("::")
    here = Path(root).absolute()
    paths = sorted(here.glob(pattern)) if pattern else [here]
    # One commit for all, so that shared inputs such as the model are loaded once.
    return [
        DatumInput(name, path, path.relative_to(here).as_posix() if pattern else path.name, "one") for path in paths
    ]


if __name__ == "__main__":
    main()
