"""The form of all commands: `-h`, types in words, summaries that are not cut off, and examples at the end of a help."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""For the command at the top; those below inherit them."""

_WORDS = {
    "<str>": "TEXT", "<int>": "NUMBER", "<float>": "NUMBER", "<int range>": "NUMBER", "<float range>": "NUMBER",
    "<path>": "PATH", "<file>": "FILE", "<directory>": "DIR", "<list[str]>": "TEXT", "<list[Path]>": "PATH",
}  # fmt: skip
"""Types as Typer writes them, in words."""

_NOT_VALID = {"Input should be a valid integer": "a whole number", "Input should be a valid number": "a number"}
"""The starts of Typer's messages about numbers, and the words for what is taken."""

_NONE: Mapping[str, str] = MappingProxyType({})

_LEAST = re.compile(r"\bx>=(\S+)(?=\])")


class App(typer.Typer):
    """Commands of one module. `examples`: command lines, each of which may end with a comment."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=AppGroup, rich_markup_mode=None, **settings)

    def command(
        self,
        name: str | None = None,
        *,
        examples: Sequence[str] = (),
        alone: Mapping[str, str] = _NONE,
        **settings: Any,
    ) -> Callable[[Any], Any]:
        """alone: the values of options that may be given without one."""
        kind = type("_Command", (AppCommand,), {"alone": alone}) if alone else AppCommand
        return super().command(name, cls=kind, epilog="\n".join(examples), **settings)


class AppCommand(TyperCommand):
    """A command whose help names its arguments as its usage does."""

    alone: Mapping[str, str] = _NONE

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line; words the errors of values for people."""
        try:
            return super().parse_args(ctx, list(self._completed(list(self._with_files(ctx, args)))))
        except typer.BadParameter as error:
            kind = next((kind for start, kind in _NOT_VALID.items() if error.message.startswith(start)), None)
            error.message = error.message.removeprefix("Value error, ") if kind is None else f"it takes {kind}"
            raise

    def _with_files(self, ctx: Any, args: Sequence[str]) -> Iterator[str]:
        """The words, with ./ before each that is not an option but a file, as `*` may give one called -1.jpg."""
        known = {"-", "--", *(name for each in self.get_params(ctx) for name in each.opts + each.secondary_opts)}
        words = args[: args.index("--")] if "--" in args else args
        for word in words:
            is_file = word.startswith("-") and word.partition("=")[0] not in known and os.path.lexists(word)
            yield f"./{word}" if is_file else word
        yield from args[len(words) :]

    def _completed(self, args: Sequence[str]) -> Iterator[str]:
        """The words, with a value after each option that may be without one and is."""
        for word, after in zip(args, (*args[1:], "-"), strict=False):
            yield word
            if word in self.alone and after.startswith("-"):
                yield self.alone[word]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage: NAME for an argument that must be there, [NAME] for another."""
        named = [_argument(each) for each in self.get_params(ctx) if isinstance(each, TyperArgument)]
        return [*([self.options_metavar] if self.options_metavar else []), *named]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments and the options, with the types of the latter in words."""
        arguments, options = [], []
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is None:
                continue
            if isinstance(each, TyperArgument):
                arguments.append((each.display_name_raw, record[1]))
            else:
                options.append((_in_words(record[0]), _LEAST.sub(r"at least \1", record[1])))
        _list(formatter, "Arguments", arguments)
        _list(formatter, "Options", options)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples, each in its line."""
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class AppGroup(TyperGroup):
    """A group whose help has the whole summary of each command."""

    command_class = AppCommand

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands with their summaries."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        _list(formatter, "Commands", [(name, _summary(each)) for name, each in commands if each and not each.hidden])


def _argument(argument: TyperArgument) -> str:
    name = argument.display_name_raw
    return (name if argument.required else f"[{name}]") + ("..." if argument.nargs == -1 else "")


def _in_words(record: str) -> str:
    """The names of an option with its type in words; those of a choice without brackets."""
    names, space, kind = record.rpartition(" ")
    if not kind.endswith(">") or not space:
        return record
    if record.endswith(" range>"):
        names, space, kind = record.rpartition(" <")[0], " ", "<int range>"
    return names + space + _WORDS.get(kind, kind.strip("<>"))


def _summary(command: Any) -> str:
    """The first paragraph of a command's help."""
    text = command.short_help or (command.help or "").strip().partition("\n\n")[0]
    return " ".join(text.split())


def _list(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
