"""The command that puts labelled pictures: folders are labels, or a file of labels is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.analysis.classifiers import label_plan
from pipelines.analysis.classifiers.experiments import GROUP
from pipelines.analysis.classifiers.label_plan import LabelPlan
from pipelines.analysis.measurement import evaluation, optional_deployment
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude_all
from pipelines.commands.kit.options import AddressOption, JsonOption, WaitOption, path
from pipelines.commands.kit.terminal import files, require_readable, say, say_all, say_json, say_unreadable
from pipelines.library import ingest
from pipelines.library.picture_sources import find
from stages.datum.text_format import counted, first_of
from stages.record import label_files

app = App()

_MOST_LABELS = 8
_MOST_NAMED = 5


@app.command(
    examples=(
        "lookalike classify add flowers/  # flowers/daisy/1.jpg has the label daisy",
        "lookalike classify add flowers.zip",
        "lookalike classify add photos/ --labels photos.csv",
    ),
)
def add(
    paths: Annotated[
        list[Path],
        typer.Argument(parser=path, metavar="PATH", help="Directories with a folder for each label, or archives."),
    ],
    labels_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            parser=path,
            metavar="FILE",
            help="A CSV file with the columns source and label, instead of the folders (repeatable). A file labels.csv "
            "in a folder does the same for this folder.",
        ),
    ] = None,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Put pictures with labels into the library: the folder of each picture is its label.

    Names and reports on unreadable files are as for `lookalike add`. The labels of a folder are
    a file of its own in the repo labels, which only the same folder replaces.
    """
    found = find(paths)
    planned = label_plan.plan(paths, found, labels_files or ())
    connection = open_write_connection(address)
    say_all(f"skipped {each}" for each in found.left_out)
    say_all(_named("left out", planned.problems))
    done: dict[str, str] = {}
    commit = evaluation.put(connection, planned.contents())
    if commit:
        done[commit] = f"put {files(len(planned.files))} into {optional_deployment.LABELS}"
    with progress.counting("putting pictures", len(planned.sources)) as report:
        written = ingest.add(connection, planned.sources, report)
    done[written.commit] = f"put {files(written.files)} into images"
    unreadable = {**found.unreadable, **written.unreadable}
    say_unreadable(unreadable)
    rejected = conclude_all(connection, done, wait, UploadedNames("images", frozenset(written.names)))
    conflicts = _conflicts(connection, planned)
    if as_json:
        say_json(
            {
                "commits": [*done],
                "put": written.files,
                "labels": dict(Counter(planned.of.values())),
                "files": [*planned.files],
                "unlabelled": planned.unlabelled,
                "elsewhere": planned.elsewhere,
                "conflicts": conflicts,
                "problems": planned.problems,
                "unreadable": unreadable,
                "rejected": rejected,
            }
        )
    else:
        say_all(_report(planned, conflicts))
        if not connection.retry(optional_deployment.deployed, connection, GROUP):
            say("to train on them: lookalike classify train")
    require_readable(unreadable)


def _conflicts(connection: Connection, planned: LabelPlan) -> dict[str, list[str]]:
    """The labels of the sources among those put that have several, in all files together."""
    found = label_files.unite(sorted(evaluation.labels_files(connection).items())).conflicts
    put = {row.source for rows in planned.files.values() for row in rows}
    return {source: several for source, several in sorted(found.items()) if source in put}


def _report(planned: LabelPlan, conflicts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    counts = Counter(planned.of.values()).most_common()
    pictures = counted(len(planned.of) + len(planned.unlabelled), "picture", "pictures")
    shown = first_of([f"{label} {count:,}" for label, count in counts], _MOST_LABELS)
    each = f": {shown}" if counts else ""
    yield f"{len(planned.of):,} of {pictures} with {counted(len(counts), 'label', 'labels')}{each}"
    yield from _named("without a label:", planned.unlabelled)
    yield from _named("labelled, but not among these pictures:", planned.elsewhere)
    told = [f"{source} ({' and '.join(several)})" for source, several in conflicts.items()]
    yield from _named("with several labels, and so without any:", told)
    yield from (f"labels: {optional_deployment.LABELS}@master:/{name}" for name in planned.files)


def _named(what: str, each: Sequence[str]) -> Iterator[str]:
    """The number of things and the first of them; nothing for none."""
    if each:
        yield f"{what} {first_of(each, _MOST_NAMED)}"
