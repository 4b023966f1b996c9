"""Lines on the terminal: what is printed, coloured and shortened in one way everywhere. Knows no server."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Column, Table

from pipelines.errors import LookalikeError
from stages.datum.text_format import counted, visible

console = Console()
errors = Console(stderr=True)

_MOST_UNREADABLE = 20
"""Most unreadable files that are named."""

_brief = [False]

_COLOURS = {"success": "green", "failure": "red", "killed": "red", "unrunnable": "red", "crashing": "red"}


def say(text: str, on: Console | None = None) -> None:
    """Prints one line, with no markup interpreted, on this console or else the standard output."""
    (on or console).print(visible(text), markup=False, emoji=False, highlight=False, soft_wrap=True)


def only_data(wanted: bool) -> None:
    """Prints all but `say_json` on stderr from now on, for readers that are programs; or all on stdout again."""
    console.stderr = wanted


def be_brief(wanted: bool) -> None:
    """Shows commits and the tables of jobs no more, but only what was done and what went wrong; or all again."""
    _brief[0] = wanted


def is_brief() -> bool:
    """Whether commits and the tables of jobs are left out."""
    return _brief[0]


def say_json(value: object, indent: int | None = 2) -> None:
    """Prints a value as JSON: values with fields as objects, times as in RFC 3339. One line without `indent`."""
    sys.stdout.write(json.dumps(value, indent=indent, default=_plain) + "\n")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def say_all(lines: Iterable[str]) -> None:
    """Prints each line."""
    for line in lines:
        say(line)


def say_first(lines: Sequence[str], most: int) -> None:
    """Prints the first lines, so many at most, and the number of the others."""
    say_all(lines[:most])
    if len(lines) > most:
        say(f"  and {len(lines) - most:,} more")


def say_unreadable(unreadable: Mapping[str, str]) -> None:
    """Names the files that could not be read, with the reasons."""
    say_first([f"left out {each}: {reason}" for each, reason in unreadable.items()], _MOST_UNREADABLE)


def require_readable(unreadable: Mapping[str, str]) -> None:
    """Raises LookalikeError if files could not be read, with their number."""
    if unreadable:
        raise LookalikeError(f"{files(len(unreadable))} could not be read: all others were put")


def plain_table(*words: Column | str, numbers: Iterable[str] = (), **settings: Any) -> Table:
    """A table without lines: columns of words by their heads, then columns of numbers."""
    table = Table(*words, box=None, header_style="bold", pad_edge=False, **settings)
    for head in numbers:
        table.add_column(head, justify="right")
    return table


def complain(text: str) -> None:
    """Prints one line about a failure, on stderr."""
    errors.print("lookalike: ", style="bold red", end="", highlight=False)
    errors.print(visible(text), markup=False, emoji=False, highlight=False, soft_wrap=True)


def ask(question: str, otherwise: str, nothing: str) -> None:
    """Asks whether to go on, on stderr. Ends the command unless the answer is yes. otherwise: for LookalikeError where
    there is no terminal to ask on. nothing: what did not happen, in words."""
    if not sys.stdin.isatty():
        raise LookalikeError(f"{nothing}: without a terminal to ask on, {otherwise}")
    console.file.flush()
    if not typer.confirm(question, default=False, err=True):
        say(nothing)
        raise typer.Exit(1)


def coloured(state: str) -> str:
    """A state as rich markup."""
    colour = _COLOURS.get(state)
    return f"[{colour}]{state}[/{colour}]" if colour else state


def files(number: int) -> str:
    """A number of files in words."""
    return counted(number, "file", "files")


def local_time(moment: datetime) -> str:
    """A time for people, in this machine's zone."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def display_path(path: Path) -> Path:
    """The path relative to the working directory, if it is below."""
    return Path(os.path.relpath(path)) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path
