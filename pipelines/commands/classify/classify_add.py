"""The command that puts labelled pictures: folders are labels, or a file of labels is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.analysis.classifiers import known_pictures, label_plan
from pipelines.analysis.classifiers.experiments import LABELLED
from pipelines.analysis.classifiers.label_plan import LabelPlan
from pipelines.analysis.measurement import evaluation
from pipelines.client.deployment import first_files
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude_all
from pipelines.commands.kit.options import AddressOption, JsonOption, WaitOption, path
from pipelines.commands.kit.terminal import files, require_readable, say, say_all, say_json, say_unreadable
from pipelines.library import ingest
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.ingest import IngestResult
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
        "lookalike classify add mnist/train-images-idx3-ubyte.gz  # its labels beside",
        "lookalike classify add photos/ --labels photos.csv",
        "lookalike classify add --labels library.csv",
    ),
)
def add(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path, metavar="PATH", help="Directories with a folder for each label, archives, or IDX files."
        ),
    ] = None,
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

    Names and reports on unreadable files are as for `lookalike add`. Pictures in the IDX format, as MNIST's, have the
    labels in the file that belongs to theirs. Pictures that the library has already, also under another name, get
    labels and are not stored again. The labels of a folder are a file of its own in the repo labels, which only the
    same folder replaces. Pictures and labels are one change, which `lookalike undo` takes back. Without pictures,
    --labels labels those of the library.
    """
    if not paths:
        _label(labels_files or (), wait, as_json, address)
        return
    found = find(paths, beside=label_plan.LABELS_FILE.__eq__)
    planned = label_plan.plan(paths, found, labels_files or ())
    connection = open_write_connection(address)
    say_all(f"skipped {each}" for each in found.left_out)
    say_all(_named("left out", planned.problems))
    given = len(planned.sources)
    planned = known_pictures.without_known(connection, planned, ContentCache(default_path()))
    if known := given - len(planned.sources):
        say(f"{files(known)} in the library already: {'it gets' if known == 1 else 'they get'} labels only")
    done, written = _put(connection, planned)
    unreadable = {**found.unreadable, **written.unreadable}
    say_unreadable(unreadable)
    rejected = conclude_all(connection, done, wait, UploadedNames("images", frozenset(written.names)))
    planned = planned.without({each.source for each in rejected})
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
        if LABELLED not in connection.retry(ProjectJobs(connection).pipelines):
            say("to train on them: lookalike classify train")
    require_readable(unreadable)


def _put(connection: Connection, planned: LabelPlan) -> tuple[dict[str, str], IngestResult]:
    """Puts pictures and labels; returns what was done, in words, by commit."""
    edits = evaluation.edits(connection, planned.contents(), to_train=True)
    labelled = f"{files(len(planned.files))} into {first_files.LABELS}" if edits else ""
    if not planned.sources:
        commit = Repository(connection, first_files.LABELS).write(edits) if edits else ""
        return {commit: f"put {labelled}"} if commit else {}, IngestResult([], "")
    with progress.counting("putting pictures", len(planned.sources)) as report:
        written = ingest.add(connection, planned.sources, report, beside={first_files.LABELS: edits})
    put = " and ".join(filter(None, (f"put {files(written.files)} into images", labelled)))
    return {written.commit: put}, written


def _label(labels_files: Sequence[Path], wait: bool, as_json: bool, address: str) -> None:
    """Puts files of labels for pictures of the library."""
    if not labels_files or as_json:
        raise typer.BadParameter("name pictures, or give --labels without --json to label those of the library")
    given = evaluation.check(labels_files)
    connection = open_write_connection(address)
    say_all(_named("left out", [problem for each in given for problem in each.problems]))
    commit = evaluation.put(connection, {each.name: each.content for each in given}, to_train=True)
    if commit:
        conclude_all(connection, {commit: f"put {files(len(given))} into {first_files.LABELS}"}, wait)
    else:
        say("these labels are there already")


def _conflicts(connection: Connection, planned: LabelPlan) -> dict[str, list[str]]:
    """The labels of the sources among those put that have several, in all files together."""
    there = sorted(evaluation.labels_files(connection).items())
    found = label_files.unite(each for each in there if label_files.is_for_training(each[0])).conflicts
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
    yield from (f"labels: {first_files.LABELS}@master:/{name}" for name in planned.files)


def _named(what: str, each: Sequence[str]) -> Iterator[str]:
    """The number of things and the first of them; nothing for none."""
    if each:
        yield f"{what} {first_of(each, _MOST_NAMED)}"
