"""Opt-in specifications: groups of pipelines in sub-directories of the others, deployed by the command that needs them.

Knows files and the pipelines that these name; knows no server.
"""

from pathlib import Path

from pipelines.specifications import reading
from pipelines.specifications.reading import HERE, Spec

GROUPS = ("duplicates", "evaluate", "serve")
"""The sub-directories of a directory of specifications that hold opt-in ones."""


def group(path: Path) -> str:
    """The group of a specification file, "" for one that every library has."""
    return path.parent.name if path.parent.name in GROUPS else ""


def command(path: Path) -> str:
    """The command that deploys an opt-in specification file."""
    return "lookalike serve --deploy" if group(path) == "serve" else f"lookalike {group(path)}"


def files(directory: Path) -> list[Path]:
    """The specification files of a directory, the opt-in ones last."""
    return [*sorted(directory.glob("*.json")), *(path for each in GROUPS for path in _in_group(directory, each))]


def beside(path: Path) -> list[Path]:
    """The specification files of the directory that a file belongs to."""
    return files(path.parent.parent if group(path) else path.parent)


def opted(directory: Path) -> list[Path]:
    """The opt-in files for a directory: its own, and those that lookalike ships for the groups that it lacks."""
    return [path for each in GROUPS for path in _in_group(directory, each) or _in_group(HERE, each)]


def needed(directory: Path, wanted: str) -> list[Spec]:
    """The opt-in pipelines of a group for a directory, with those of other groups that they read, upstream first.
    Raises LookalikeError for an invalid specification."""
    everything = reading.ordered(reading.read(path) for path in opted(directory))
    names = {spec.name for spec in everything if group(spec.path) == wanted}
    for spec in reversed(everything):
        if spec.name in names:
            names |= spec.repos
    return [spec for spec in everything if spec.name in names]


def names(directory: Path) -> list[str]:
    """The opt-in pipelines for a directory, upstream first."""
    return [spec.name for spec in reading.ordered(reading.read(path) for path in opted(directory))]


def _in_group(directory: Path, name: str) -> list[Path]:
    return sorted((directory / name).glob("*.json"))
