"""The group of commands `model`: the backbone that makes the embeddings."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.client.backbones import Precision, push_command
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, WaitOption
from pipelines.commands.kit.terminal import console, plain_table, say, say_all, say_json
from pipelines.library import backbone_push
from stages.backbone.catalogue import CATALOGUE, MEASURED, CatalogueEntry, find
from stages.datum.text_format import visible

app = App()
model_app = App(help="The backbone that makes the embeddings.", no_args_is_help=True)
app.add_typer(model_app, name="model")


@model_app.command("list", examples=("lookalike model list", "lookalike model list --json"))
def list_models(as_json: JsonOption = False) -> None:
    """Show the backbones that have names.

    Any other Keras model can be pushed as a .keras file.
    """
    if as_json:
        say_json([_described(entry) for entry in CATALOGUE.values()])
        return
    table = plain_table(collapse_padding=True)
    for name in ("name", "px", "dimension", "MB", "licence", "weights", "speed", "precision"):
        words = name in ("name", "licence", "weights")
        table.add_column(name, no_wrap=True, justify="left" if words else "right")
    for entry in CATALOGUE.values():
        numbers = map(str, (entry.image_size, entry.dimension, entry.megabytes))
        rate = "" if entry.rate is None else str(entry.rate)
        precision = "" if entry.precision is None else f"{entry.precision:.3f}"
        table.add_row(entry.name, *numbers, entry.licence, entry.weights, rate, precision)
    console.print(table)
    say("px: the side of the pictures that it was trained on; most take others as well (--image-size)")
    say("licence: of the weights, as their publishers state it")
    for each in MEASURED:
        say(each)
    for entry in CATALOGUE.values():
        if entry.note:
            say(f"{entry.name}: {entry.note}")


def _described(entry: CatalogueEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "image_size": entry.image_size,
        "dimension": entry.dimension,
        "megabytes": entry.megabytes,
        "licence": entry.licence,
        "weights": entry.weights,
        "pictures_per_second": entry.rate,
        "precision": entry.precision,
        "note": entry.note,
    }


@model_app.command(
    "push",
    examples=(
        "lookalike model push efficientnet-lite2",
        "lookalike model push efficientnet-lite0 --image-size 160",
        "lookalike model push mine.keras",
        "lookalike model push clip/",
    ),
)
def push(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE|DIRECTORY",
            help="A backbone's name, such as efficientnet-lite2, a .keras file, or a directory with that of an image "
            "tower and text-tower.keras.",
        ),
    ],
    image_size: Annotated[
        int | None, typer.Option(help="Side of the pictures in pixels, for a named backbone [default: the library's].")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file to take a named backbone's weights from.")
    ] = None,
    precision: Annotated[
        Precision, typer.Option(help="The precision of a named backbone. Any but float32 is another model.")
    ] = "float32",
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The text tower of a .keras file, with which words find pictures."),
    ] = None,
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Put a backbone into the repo models. A new one recomputes the features and all below.

    The pictures keep the size that the library has. A backbone of another size changes it in the same step: then the
    pictures, too, are computed again. A text tower that is added to the same backbone, or replaced, recomputes no
    picture.
    """
    backbone_push.must_exist(source)
    connection = open_write_connection(address)
    with console.status(f"making {escape(visible(source))}"):
        pushed = backbone_push.push(connection, source, image_size, weights, precision, text)
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
    if pushed.wordless:
        say("the model before had a text tower, and this one has none: queries by words find nothing now")
    if pushed.added:
        done = f"{pushed.spec.name} is there already: added {' and '.join(pushed.added)}"
    conclude(connection, done, pushed.commit, wait)


def _say_resized(pushed: backbone_push.PushOutcome) -> None:
    """Tells what a change of the size costs, and how to undo it."""
    before = " and ".join(map(str, sorted(set(pushed.resized.values()))))
    say(
        f"pictures change from {before} to {pushed.spec.image_size} pixels in {' and '.join(sorted(pushed.resized))}: "
        "all of them are computed again, and everything below"
    )
    if pushed.replaced is not None and pushed.replaced.pooling != "own":
        say(f"the way back: {push_command(pushed.replaced)}")
    say_all(f"stopped {job.pipeline}: job {job.id}, of the backbone before" for job in pushed.stopped)
