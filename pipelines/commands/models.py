"""The group of commands `model`: the backbone that makes the embeddings."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.client.repository import Repository
from pipelines.commands.app import App
from pipelines.commands.connecting import connected_to_write
from pipelines.commands.options import AddressOption, WaitOption
from pipelines.commands.terminal import console, say
from pipelines.commands.waiting import conclude
from pipelines.library import models
from stages.wording import visible

app = App()
model_app = App(help="The backbone that makes the embeddings.", no_args_is_help=True)
app.add_typer(model_app, name="model")


@model_app.command(
    "push",
    examples=(
        "lookalike model push efficientnet-lite2",
        "lookalike model push efficientnet-lite0 --image-size 160",
        "lookalike model push mine.keras",
    ),
)
def push(
    source: Annotated[
        str,
        typer.Argument(metavar="NAME|FILE", help="A backbone's name, such as efficientnet-lite2, or a .keras file."),
    ],
    image_size: Annotated[
        int | None, typer.Option(help="Side of the pictures in pixels, for a named backbone.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file to take a named backbone's weights from.")
    ] = None,
    precision: Annotated[
        models.Precision, typer.Option(help="What a named backbone computes in; any but float32 is another model.")
    ] = "float32",
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Put a backbone into the repo models; a new one recomputes the features and all below."""
    connection = connected_to_write(address)
    with console.status(f"making {escape(visible(source))}"):
        pushed = models.push(Repository(connection, models.REPO), source, image_size, weights, precision)
    if pushed.change:
        say(f"{precision}: {pushed.change}")
    if not pushed.commit:
        say(f"{pushed.spec.name} is there already: nothing to do")
        return
    conclude(connection, f"pushed {pushed.spec.name} into models", pushed.commit, wait)
