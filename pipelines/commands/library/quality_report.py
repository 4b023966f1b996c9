"""The command that lists pictures which stand out: blurred, dark, flat, odd, unlike all others."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from pipelines.analysis.measurement import picture_quality
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, output_option
from pipelines.commands.kit.terminal import console, display_path, plain_table, say, say_json
from stages.datum.text_format import counted, visible
from stages.report.page_links import FIRST
from stages.report.quality_page import LINES

app = App()

_EXAMPLES = 3
"""Pictures of a list that are named."""


@app.command(examples=("lookalike quality", "lookalike quality --output quality --json"))
def quality(
    output: Annotated[Path, output_option("The directory for the page and the list.")] = Path("results/quality"),
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """List pictures that stand out: blurred, dark, bright, without content, of an odd size or shape, unlike all others.

    A page shows them. It reads what the index knows and computes nothing. The lists are for looking: nothing is
    recommended for removal.
    """
    found = picture_quality.report(open_connection(address), output)
    if as_json:
        lists = [
            {"name": each.name, "limit": each.limit, "pictures": len(each.pictures), "note": each.note}
            for each in found.lists
        ]
        say_json({"directory": output, "commit": found.commit, "pictures": found.pictures, "lists": lists})
        return
    say(f"{counted(found.pictures, 'picture', 'pictures')} in the library; these stand out:")
    table = plain_table()
    table.add_column("list", no_wrap=True)
    table.add_column("pictures", justify="right", no_wrap=True)
    table.add_column("such as", overflow="fold")
    for each in found.lists:
        names = ", ".join(picture.sources[0].path for picture in each.pictures[:_EXAMPLES])
        count = "" if each.note else f"{len(each.pictures):,}"
        table.add_row(*(escape(visible(cell)) for cell in (each.title, count, each.note or names)))
    console.print(table)
    say(f"look at them, with the limit of each list: {display_path(output / FIRST)}")
    say(f"all of them: {display_path(output / LINES)}")
