"""Opt-in specifications: groups of pipelines in sub-directories of the others, deployed by the command that needs them.

Knows files and the pipelines that these name; knows no server.
"""

from pathlib import Path

from pipelines.specifications import pipeline_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS, PipelineSpec

DIRECTORIES = ("listing", "annotations", "duplicates", "evaluate", "map", "serve", "classify", "vectors")
"""The sub-directories of a directory of specifications that hold opt-in ones."""

GROUPS = (*DIRECTORIES, "classify-serve")
"""The groups: a sub-directory is one, but for the service in it that has the name of a group of its own."""

_COMMANDS = {
    "annotations": "lookalike attributes add",
    "map": "lookalike map fit",
    "serve": "lookalike serve --deploy",
    "classify": "lookalike classify train",
    "classify-serve": "lookalike classify serve --deploy",
    "vectors": "lookalike vectors add",
}
"""The commands that deploy groups, where these are not called as the group is."""

_REMOVALS = {
    "annotations": "lookalike attributes off",
    "map": "lookalike map off",
    "classify": "lookalike classify off",
    "classify-serve": "lookalike classify serve --off",
    "vectors": "lookalike vectors off",
}


def group(path: Path) -> str:
    """The group of a specification file, "" for one that every library has."""
    if path.parent.name not in DIRECTORIES:
        return ""
    return path.stem if path.stem in GROUPS and path.stem not in DIRECTORIES else path.parent.name


def directory(path: Path) -> str:
    """The sub-directory of a specification file, "" for one that every library has."""
    return path.parent.name if group(path) else ""


def command(wanted: str) -> str:
    """The command that deploys a group."""
    return _COMMANDS.get(wanted, f"lookalike {wanted}")


def removal(wanted: str) -> str:
    """The command that deletes a group again."""
    return _REMOVALS.get(wanted, f"lookalike {wanted} --off")


def files(directory: Path) -> list[Path]:
    """The specification files of a directory, the opt-in ones last."""
    return [*sorted(directory.glob("*.json")), *(path for each in GROUPS for path in _in_group(directory, each))]


def beside(path: Path) -> list[Path]:
    """The specification files of the directory that a file belongs to."""
    return files(path.parent.parent if group(path) else path.parent)


def optional_files(directory: Path) -> list[Path]:
    """The opt-in files for a directory: its own, and those that lookalike ships for the groups that it lacks."""
    return [path for each in GROUPS for path in _in_group(directory, each) or _in_group(SHIPPED_SPECS, each)]


def required_specs(directory: Path, wanted: str) -> list[PipelineSpec]:
    """The opt-in pipelines of a group for a directory, with those of other groups that they read, upstream first.
    Raises LookalikeError for an invalid specification."""
    everything = pipeline_specs.ordered(pipeline_specs.read(path) for path in optional_files(directory))
    names = {spec.name for spec in everything if group(spec.path) == wanted}
    for spec in reversed(everything):
        if spec.name in names:
            names |= spec.repos
    return [spec for spec in everything if spec.name in names]


def names(directory: Path) -> list[str]:
    """The opt-in pipelines for a directory, upstream first."""
    return [
        spec.name for spec in pipeline_specs.ordered(pipeline_specs.read(path) for path in optional_files(directory))
    ]


def _in_group(directory: Path, name: str) -> list[Path]:
    return sorted(path for each in DIRECTORIES for path in (directory / each).glob("*.json") if group(path) == name)
