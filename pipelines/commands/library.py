"""The commands for pictures, queries and backbones: what goes in and what comes out."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import display, ingest, models, pictures, progress, results
from pipelines import query as asking
from pipelines.commands.options import SheetsOption, WaitOption
from pipelines.commands.settling import settle
from pipelines.connection import here
from pipelines.display import console, files, say, say_all
from pipelines.repository import Repository
from stages.wording import visible

app = typer.Typer()
model_app = typer.Typer(help="The backbone that makes the embeddings.", no_args_is_help=True)
app.add_typer(model_app, name="model")


@app.command()
def add(
    paths: Annotated[list[Path], typer.Argument(help="Pictures, directories, archives or STL-10 files.")],
    wait: WaitOption = True,
) -> None:
    """Put pictures into the library; those of the same name are replaced."""
    connection = here()
    found = pictures.find(paths)
    say_all(f"left out {each}" for each in found.left_out)
    with progress.counting("putting pictures", len(found.sources)) as report:
        written = ingest.add(connection, found.sources, report)
    settle(connection, f"put {files(written.files)} into images", written.commit, wait)


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(help="Names of pictures in the library, as result sheets show them.")],
    wait: WaitOption = True,
) -> None:
    """Take pictures out of the library."""
    connection = here()
    written = ingest.remove(connection, names)
    settle(connection, f"removed {files(written.files)} from images", written.commit, wait)


@app.command()
def query(
    paths: Annotated[list[Path], typer.Argument(help="Pictures, or directories of them; each is one entry.")],
    output: SheetsOption = Path("results"),
    wait: WaitOption = True,
) -> None:
    """Search the library for look-alikes of pictures and write their result sheets."""
    connection = here()
    with progress.counting("putting queries") as report:
        asked = asking.put(connection, paths, report)
    say_all(f"left out {each}" for each in asked.left_out)
    settle(connection, f"put {files(asked.files)} into queries", asked.commit, wait)
    if wait:
        display.show_sheets(results.export(connection, output, asked.entries))


@app.command("results")
def show_results(
    entries: Annotated[list[str] | None, typer.Argument(help="Query entries by name; all when none is given.")] = None,
    output: SheetsOption = Path("results"),
    at: Annotated[str, typer.Option(help="A commit's id: the sheets as they were then.")] = "",
) -> None:
    """Write result sheets, as they are now or were at an older commit, to a directory."""
    sheets = results.export(here(), output, entries or (), at)
    if not sheets:
        say("there are no result sheets yet: put pictures with `lookalike add`, then ask with `lookalike query`")
    display.show_sheets(sheets)


@model_app.command("push")
def push(
    source: Annotated[str, typer.Argument(help="efficientnet-lite0, resnet50, or a .keras file.")],
    image_size: Annotated[
        int | None, typer.Option(help="Side of the pictures in pixels, for a named backbone.")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="A file to take a named backbone's weights from.")] = None,
    wait: WaitOption = True,
) -> None:
    """Put a backbone into the repo models; a new one recomputes the features and all below."""
    connection = here()
    with console.status(f"making {escape(visible(source))}"):
        pushed = models.push(Repository(connection, models.REPO), source, image_size, weights)
    if not pushed.commit:
        say(f"{pushed.spec.name} is there already: nothing to do")
        return
    settle(connection, f"pushed {pushed.spec.name} into models", pushed.commit, wait)
