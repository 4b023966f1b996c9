"""Options that several commands have."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.commands.kit import terminal
from pipelines.errors import LookalikeError
from pipelines.specifications import optional_specs, specs_directory
from stages.record import name_lists

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="The directory of the local server's state [default: $LOOKALIKE_ROOT, else .lookalike here or above].",
    ),
]

NetworksOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NETWORK",
        help="A network from which pictures are fetched by URL though it is not public, such as 10.1.0.0/16; "
        "repeatable.",
    ),
]

ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--by-reference",
        help="Store the URL and the hash of each picture instead of its bytes; preprocess fetches them.",
    ),
]


def output_option(help: str, metavar: str = "DIR") -> Any:
    """The option of the place that a command writes to."""
    return typer.Option("--output", "-o", metavar=metavar, help=help)


def path(text: str) -> Path:
    """The parser of a path. An empty one would be the current directory, which nobody has named."""
    if not text:
        raise typer.BadParameter("a path is empty (the current directory is .)")
    return Path(text)


AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="The server's address [default: PACHD_ADDRESS, else the library here or above, else pachctl's context].",
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="The local server's port (0 takes a free one) [default: the library's, at first 30650 or a free one].",
    ),
]
SheetsOption = Annotated[Path, output_option("The directory to write result sheets to.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until every job that this starts has ended.")]


def _only_data(wanted: bool) -> bool:
    terminal.only_data(wanted)
    return wanted


def _verbosely(wanted: bool) -> bool:
    terminal.be_brief(not wanted)
    return wanted


def _pipelines() -> list[str]:
    return sorted(path.stem for path in optional_specs.files(specs_directory.current()))


JsonOption = Annotated[
    bool, typer.Option("--json", callback=_only_data, is_eager=True, help="Print JSON, and everything else on stderr.")
]
PipelineArgument = Annotated[
    str, typer.Argument(metavar="PIPELINE", autocompletion=_pipelines, help="The name of a pipeline [default: all].")
]
NearestOption = Annotated[
    int | None,
    typer.Option(
        "-k", min=1, metavar="NUMBER", help="The number of nearest pictures to list [default: all that are kept, K]."
    ),
]
ListOption = Annotated[
    str,
    typer.Option("--from", metavar="FILE", help="Take the names from a file, exactly one name a line (- for stdin)."),
]
OnceOption = Annotated[
    bool, typer.Option("--once", help="Compute this once, and delete the pipelines for it again at the end.")
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_verbosely, help="Show commits, and the table of jobs, too.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def listed(file: str) -> list[str]:
    """The names in a list, or in the standard input for "-". Raises LookalikeError if it cannot be read as a list."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return list(name_lists.parse(content.decode("utf-8", "surrogateescape")))
    except OSError as error:
        raise LookalikeError(f"cannot read {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise LookalikeError(f"{file} is not a list of names: {error}") from error


LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="The most to show, the newest ones.")]
