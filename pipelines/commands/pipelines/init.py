"""The command that starts a directory of a team's own."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands.kit.app import App
from pipelines.commands.kit.options import path
from pipelines.commands.kit.terminal import display_path, say
from pipelines.specifications import specs_directory
from stages.datum.text_format import counted

app = App()


@app.command(examples=("lookalike init pictures", "lookalike init ."))
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", parser=path, help="The directory, created if missing.")],
) -> None:
    """Write the specifications, their overlays and a Makefile into a directory of your own, to change and to commit.

    Commands called there, or below, use its specifications. Nothing that exists is overwritten."""
    written = specs_directory.start(directory)
    specs = counted(
        len([each for each in written if specs_directory.NAME in each.relative_to(directory).parts]), "file", "files"
    )
    others = ", ".join(each.name for each in written if specs_directory.NAME not in each.relative_to(directory).parts)
    say(f"wrote {specs} to {display_path(directory / specs_directory.NAME)}/, and {others}")
    say("Next:")
    if directory.resolve() != Path.cwd():
        say(f"  cd {display_path(directory)}")
    mine = Path(sys.argv[0])
    if mine.name == "lookalike" and shutil.which("lookalike") is None:
        say(f"  export LOOKALIKE={mine.absolute()}")  # the Makefile's variable
    say("  make up deploy model   start a server, create the pipelines, push a backbone")
    say("  make                   list all other targets")
