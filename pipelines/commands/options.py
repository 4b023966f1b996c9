"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

RootOption = Annotated[
    Path | None,
    typer.Option("--root", help="The directory of the local server's state [default: $LOOKALIKE_ROOT or .lookalike]."),
]
PortOption = Annotated[int, typer.Option(help="The local server's port; 0 takes a free one.")]
SheetsOption = Annotated[Path, typer.Option("--output", "-o", help="The directory to write result sheets to.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until every job that this starts has ended.")]
