"""The commands of vectors that another model computed: put, listed, removed."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import DeleteFile
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import optional_pipelines, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, WaitOption, YesOption, path
from pipelines.commands.kit.terminal import complain, display_path, say, say_json
from pipelines.errors import LookalikeError
from pipelines.library.vectors import vector_plan, vector_repo
from pipelines.library.vectors.vector_plan import KnownPictures, PlannedVectors, VectorProblem
from pipelines.library.vectors.vector_repo import VectorRepo
from pipelines.library.vectors.vector_source import VectorRow, VectorSource
from stages.datum.text_format import counted
from stages.files.tables.vector_table import DIRECTORY, REPO, VectorTable

app = App()
vectors_app = App(help="Search by vectors that another model has computed.", no_args_is_help=True)
app.add_typer(vectors_app, name="vectors")

_GROUP = "vectors"
_INDEX = "vector-index"

_MOST_PROBLEMS = 20


@vectors_app.command(
    examples=(
        "lookalike vectors add clip.parquet --model clip-vit-b32",
        "lookalike vectors add clip.npy --model clip --skip-bad --report bad.tsv",
        "lookalike vectors add exported.parquet",
    ),
)
def add(
    file: Annotated[
        Path,
        typer.Argument(
            parser=path,
            metavar="FILE",
            help="Parquet with a column id or path and one of vectors; .npy with a .jsonl beside it; or what "
            "`lookalike export --vectors` wrote in one of these forms.",
        ),
    ],
    model: Annotated[str, typer.Option(metavar="NAME", help="The name of the model [default: as the file says].")] = "",
    column: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the vectors in Parquet.")] = "vector",
    replace: Annotated[
        bool, typer.Option("--replace", help="Put other vectors than those there in their place.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that cannot be put, and put the others.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every row that cannot be put, with the reason (TSV).")
    ] = None,
    yes: YesOption = False,
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Give pictures of the library vectors of another model, to search by them.

    A picture is named by its id, or by its path as in the library. All rows are checked first, and nothing is put while
    one of them cannot be. Pictures without a vector are counted, and are not found by these vectors. The first call
    creates the pipeline vector-index: it says what each later `lookalike add` will cost, and asks."""
    source = VectorSource(file, column)
    connection = open_write_connection(address)
    repo = vector_repo.read(connection)
    table = _model(source, model, repo)
    pictures = KnownPictures(vector_repo.read_pictures(connection))
    if not pictures.ids:
        raise LookalikeError("the library has no pictures that vectors could be of: add some with `lookalike add`")
    with tempfile.TemporaryDirectory(prefix="lookalike-") as made:
        scratch = Path(made)
        planned = _planned(connection, source, pictures, repo, table, replace, scratch, report)
        _say(planned, pictures, repo, skip_bad, report)
        edits = vector_repo.without(connection, repo, planned.replaced, scratch)
        edits += [edit for each in planned.batches for edit in each.edits(scratch)]
        with optional_pipelines.deployed(connection, _GROUP, wait, yes=yes):
            if not edits:
                say("these vectors are there already")
                return
            commit = vector_repo.write(connection, repo, edits)
            done = f"put the vectors of {counted(planned.pictures, 'picture', 'pictures')} into {REPO}"
            conclude(connection, done, commit, wait)


def _model(source: VectorSource, name: str, repo: VectorRepo) -> VectorTable:
    """The model of the vectors, without pictures or a dimension. Raises LookalikeError where nothing names it, or where
    the vectors there are another one's."""
    stated = source.stated
    if not name and not stated.model:
        raise typer.BadParameter(
            f"{source.file.name} does not say which model computed its vectors: name it", param_hint="'--model'"
        )
    found = VectorTable(ids=[], model=stated.model or name, backbone=name or stated.backbone, dimension=0)
    held = repo.model
    if held is not None and held.model != found.model:
        raise LookalikeError(
            f"the library has vectors of {held.described}, and distances to those of {found.backbone} would mean "
            "nothing: take the others away first with `lookalike vectors clear`"
        )
    return found


def _planned(
    connection: Connection,
    source: VectorSource,
    pictures: KnownPictures,
    repo: VectorRepo,
    table: VectorTable,
    replaces: bool,
    scratch: Path,
    report: Path | None,
) -> PlannedVectors:
    """All rows, checked. Shows the first that cannot be put, and writes all of them to `report`."""
    shown = 0
    with ExitStack() as opened:
        to = None if report is None else opened.enter_context(report.open("w", encoding="utf-8", errors="replace"))

        def note(problem: VectorProblem) -> None:
            nonlocal shown
            if to is not None:
                print(problem.line, problem.kind, problem.reason, sep="\t", file=to)
            if shown < _MOST_PROBLEMS:
                shown += 1
                typer.echo(f"{source.file.name}, row {problem.line}: {problem.reason}", err=True)

        done = opened.enter_context(progress.counting("checking vectors", source.count))

        def counting() -> Iterator[VectorRow]:
            for row in source.rows():
                done(1)
                yield row

        dimension, rows = vector_plan.dimension_of(counting(), repo)
        sized = VectorTable(ids=[], model=table.model, backbone=table.backbone, dimension=dimension)
        fetch = partial(vector_repo.fetch, connection, repo, scratch=scratch)
        return vector_plan.plan(rows, pictures, repo, sized, fetch, replaces, scratch, note)


def _say(
    planned: PlannedVectors, pictures: KnownPictures, repo: VectorRepo, skip_bad: bool, report: Path | None
) -> None:
    """Says what will be put, and what not. Raises LookalikeError if a row cannot be put, unless such are left out."""
    bad = planned.problems.total()
    if bad:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(planned.problems.items()))
        where = f"; {display_path(report)} has each of them" if report is not None else ""
        if not skip_bad:
            fix = "correct them, or leave them out with --skip-bad"
            raise LookalikeError(f"nothing was put, for {counted(bad, 'row', 'rows')} ({kinds}{where}): {fix}")
        complain(f"left out {counted(bad, 'row', 'rows')}: {kinds}{where}")
    if planned.same:
        say(f"{counted(planned.same, 'row says', 'rows say')} again what an earlier one says")
    if planned.there:
        say(f"{counted(planned.there, 'picture has', 'pictures have')} this vector already")
    having = {*repo.ids(), *(id for each in planned.batches for id in each.table.ids)}
    if missing := len(pictures.ids - having):
        none = counted(missing, "picture has", "pictures have")
        say(
            f"{none} no vector of {planned.table.backbone}, and cannot be found by them: "
            "lookalike vectors list --missing"
        )


@vectors_app.command("list", examples=("lookalike vectors list", "lookalike vectors list --missing"))
def list_(
    missing: Annotated[bool, typer.Option("--missing", help="List the pictures without a vector, by a path.")] = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the model, and how many pictures have a vector of it."""
    connection = open_connection(address)
    repo = vector_repo.read(connection)
    paths = {id: path for path, id in sorted(vector_repo.read_pictures(connection).items(), reverse=True)}
    having, known = {*repo.ids()}, paths.keys()
    without = sorted(paths[id] for id in known - having)
    deployed = _INDEX in connection.retry(ProjectJobs(connection).pipelines)
    model = repo.model
    if as_json:
        told = None if model is None else {"name": model.backbone, "model": model.model, "dimension": model.dimension}
        numbers = {"pictures": len(having & known), "missing": len(without), "gone": len(having - known)}
        say_json({"model": told, **numbers, "deployed": deployed, **({"paths": without} if missing else {})})
        return
    if model is None:
        say("there are no vectors: lookalike vectors add FILE --model NAME")
        return
    if missing:
        for each in without:
            say(each)
        return
    say(f"{model.described}: {counted(len(having & known), 'picture has', 'pictures have')} a vector")
    if without:
        say(f"{counted(len(without), 'picture has', 'pictures have')} none, and cannot be found by these vectors")
    if gone := len(having - known):
        say(
            f"{counted(gone, 'vector is', 'vectors are')} of pictures that are not in the library: they count if these "
            "come back"
        )
    if not deployed:
        say(f"nothing searches them, since the pipeline {_INDEX} is not deployed: lookalike vectors add")


@vectors_app.command(examples=("lookalike vectors clear",))
def clear(wait: WaitOption = True, address: AddressOption = "") -> None:
    """Take all vectors away, such as before those of another model come. `lookalike undo` puts them back."""
    connection = open_write_connection(address)
    repo = vector_repo.read(connection)
    if repo.model is None:
        say("there are no vectors: nothing to do")
        return
    commit = vector_repo.write(connection, repo, [DeleteFile(f"/{DIRECTORY}/")])
    conclude(connection, f"took the vectors of {repo.model.described} away", commit, wait)


@vectors_app.command(examples=("lookalike vectors off",))
def off(address: AddressOption = "") -> None:
    """Delete the pipeline that indexes the vectors. The vectors stay."""
    if optional_pipelines.off(open_write_connection(address), _GROUP):
        say(f"the vectors stay in the repo {REPO}")
