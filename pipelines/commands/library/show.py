"""The command that shows pictures."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, output_option
from pipelines.commands.kit.terminal import console, display_path, say
from pipelines.library import picture_display

app = App()


@app.command(examples=("lookalike show holiday/beach.jpg a.png", "lookalike show train_X.bin/000123 --output shown"))
def show(
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="PICTURE", help="Picture files, records of STL-10 files, or names of pictures in the library."
        ),
    ],
    output: Annotated[Path | None, output_option("A directory for PNG files, instead of the terminal.")] = None,
    address: AddressOption = "",
) -> None:
    """Show pictures on the terminal, or write PNG files if it cannot show them.

    A record is its file's name, a slash and its number: train_X.bin/000123.
    """
    into = output if output is not None or picture_display.can_show(console) else Path("shown")
    for number, image in enumerate(images, start=1):
        picture = picture_display.from_disk(image) or picture_display.from_library(open_connection(address), image)
        if into is None:
            say(image)
            console.print(picture_display.half_blocks(picture, console.width))
        else:
            say(f"{image}: {display_path(picture_display.write_png(picture, into, number, image))}")
