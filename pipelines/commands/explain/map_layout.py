"""The group of commands `map`: the library laid out as a map, which the page of `lookalike serve` shows."""

from typing import Annotated

import typer

from pipelines.analysis.measurement import layout_fit, optional_deployment
from pipelines.analysis.measurement.layout_fit import MOST_SAMPLE, SAMPLE
from pipelines.analysis.measurement.optional_deployment import MAP
from pipelines.commands.kit import optional_pipelines
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, WaitOption, YesOption
from pipelines.commands.kit.terminal import console, say
from stages.datum.text_format import counted

app = App()
map_app = App(help="The library as a map, on which similar pictures lie together.", no_args_is_help=True)
app.add_typer(map_app, name="map")


@map_app.command(examples=("lookalike map fit", "lookalike map fit --sample 30000 --seed 7"))
def fit(
    sample: Annotated[
        int, typer.Option(min=50, max=MOST_SAMPLE, help="The most pictures that UMAP lays out; others join them.")
    ] = SAMPLE,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 32) - 1, help="Another seed gives another layout.")] = 0,
    yes: YesOption = False,
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Lay the library out as a map, anew, and keep it up to date from now on.

    A sample of the pictures is laid out by UMAP, and committed to the repo layouts. The pipeline map then places every
    picture, also those that are added later, next to the most similar ones of the sample, and nothing else moves. The
    first call creates that pipeline: it says what each later `lookalike add` will cost, and asks. After another model
    was pushed, call it again.
    """
    connection = open_write_connection(address)
    optional_deployment.check(connection, MAP)
    with console.status("laying out a sample of the library"):
        found = layout_fit.fit(connection, sample, seed)
    with optional_pipelines.deployed(connection, MAP, wait, yes=yes):
        commit = layout_fit.put(connection, found)
    if commit:
        facts, clusters = found.facts, counted(len(found.facts["clusters"]), "cluster", "clusters")
        done = f"laid out {facts['sample']:,} of {counted(facts['library'], 'picture', 'pictures')}, in {clusters}"
        conclude(connection, done, commit, wait)
    else:
        say("this layout is there already: nothing to do")
    say("to see the map: lookalike serve, and then Map")


@map_app.command(examples=("lookalike map off",))
def off(address: AddressOption = "") -> None:
    """Delete the pipeline map. The layout stays."""
    optional_pipelines.off(open_write_connection(address), MAP)
