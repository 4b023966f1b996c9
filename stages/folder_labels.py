"""Labels from the folders of pictures, for the command: the parent folder of each source is its label.

Runs on plain directories only. Inputs: `labels`, files of labels; `pictures`, a directory of tables of the index.
Writes folders.csv, with a label for each source in a folder, also in archives, that no other file labels.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.folder_labels"))

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

from stages.datum.contract import Datum
from stages.files.tables.image_table import read_sources
from stages.record.label_files import FOLDERS, LabelRow, can_be_written, format_csv, unite


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters."""

    def process(datum: Datum) -> None:
        given = datum.inputs["labels"].path
        files = ((path.name, path.read_bytes()) for path in sorted(given.iterdir()) if path.name != FOLDERS)
        labels = unite(files)
        known = labels.of.keys() | labels.conflicts.keys()
        tables = sorted(datum.inputs["pictures"].path.rglob("*.parquet"))
        rows = from_folders(path for table in tables for path in read_sources(table).paths)
        (datum.out / FOLDERS).write_bytes(format_csv(row for row in rows if row.source not in known))

    return process


def from_folders(sources: Iterable[str]) -> list[LabelRow]:
    """The labels of sources, by source; none for those without a folder, or with one that is not UTF-8."""
    rows = (LabelRow(source, PurePosixPath(source).parent.name.strip()) for source in sorted({*sources}))
    return [row for row in rows if row.label and can_be_written(row)]
