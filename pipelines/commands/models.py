"""The group of commands `model`: the backbone that makes the embeddings."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.app import App
from pipelines.commands.connecting import connected_to_write
from pipelines.commands.options import AddressOption, WaitOption
from pipelines.commands.terminal import console, say, say_all
from pipelines.commands.waiting import conclude
from pipelines.library import models
from stages.catalogue import find
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
        int | None,
        typer.Option(help="Side of the pictures in pixels, for a named backbone [default: the library's]."),
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
    """Put a backbone into the repo models; a new one recomputes the features and all below.

    The pictures keep the size that the library has. A backbone of another size changes it in the same step: then the
    pictures, too, are computed again.
    """
    connection = connected_to_write(address)
    with console.status(f"making {escape(visible(source))}"):
        pushed = models.push(connection, source, image_size, weights, precision)
    if pushed.change:
        say(f"{precision}: {pushed.change}")
    if not pushed.commit:
        say(f"{pushed.spec.name} is there already: nothing to do")
        return
    if pushed.resized:
        _say_resized(pushed)
    known, side = find(source), pushed.spec.image_size
    if known is not None and image_size is None and known.image_size != side:
        say(f"{known.name} was trained on {known.image_size} pixels: --image-size {known.image_size} takes that")
    done = f"pushed {pushed.spec.name} for {side} × {side} pixels into models"
    conclude(connection, done, pushed.commit, wait)


def _say_resized(pushed: models.Pushed) -> None:
    """Tells what a change of the size costs, and how to undo it."""
    before = " and ".join(map(str, sorted(set(pushed.resized.values()))))
    say(
        f"pictures change from {before} to {pushed.spec.image_size} pixels in {' and '.join(sorted(pushed.resized))}: "
        "all of them are computed again, and everything below"
    )
    if pushed.replaced is not None and pushed.replaced.pooling != "own":
        say(f"the way back: {models.again(pushed.replaced)}")
    say_all(f"stopped {job.pipeline}: job {job.id}, of the backbone before" for job in pushed.stopped)
