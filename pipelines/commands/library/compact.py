"""The command that joins blocks, and the price of blocks that are written again, in words."""

from pipelines.analysis.time_travel.past_library import LIBRARY
from pipelines.client import backbones
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, VerboseOption, WaitOption, YesOption
from pipelines.commands.kit.terminal import ask, say, say_json
from pipelines.library import compaction
from pipelines.library.compaction import BlockRewrite
from pipelines.library.snapshots import REPO
from stages.datum.text_format import counted

app = App()

_MANY_FILES = 1000
"""Files beside blocks from which on joining them is proposed: each is a datum."""


@app.command(examples=("lookalike compact", "lookalike compact --yes --no-wait"))
def compact(
    yes: YesOption = False,
    verbose: VerboseOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Join small blocks and pictures put one by one, and drop the bytes of removed pictures from half-empty blocks.

    Answers stay as they are. Each picture concerned is decoded and has its vector computed again: the price is shown
    first, and nothing is written unless you agree. No other command joins blocks. Older commits keep the old ones.
    """
    connection = open_write_connection(address)
    rewrite = connection.retry(compaction.joined, connection)
    if not rewrite:
        say("nothing to join: the library has no small blocks, half-empty blocks or single pictures worth joining")
    commit = ""
    if rewrite:
        say(price(connection, rewrite))
        if not yes:
            ask("write them again?", "--yes writes them", "nothing was written")
        with progress.counting("putting pictures", rewrite.kept) as report:
            commit = compaction.write(connection, rewrite, report)
        conclude(connection, f"wrote {counted(rewrite.made, 'block', 'blocks')}", commit, wait)
    if as_json:
        data = {"blocks": len(rewrite.blocks), "files": len(rewrite.files), "made": rewrite.made}
        say_json({"commit": commit or None, **data, "computed": rewrite.kept, "dropped": rewrite.hidden})


def propose(connection: Connection) -> None:
    """Says so if the library has very many files beside blocks, as the newest job of preprocess has counted them."""
    newest = None
    with suppress_not_found():
        newest = connection.retry(ProjectJobs(connection).newest, LIBRARY[0])
    if newest is None or newest.total <= _MANY_FILES:
        return
    lone = newest.total - len(connection.retry(lambda: list(Repository(connection, REPO).glob("/%block-*"))))
    if lone > _MANY_FILES:
        say(f"the library has {lone:,} files beside blocks, which slows jobs down: `lookalike compact` joins them")


def price(connection: Connection, rewrite: BlockRewrite) -> str:
    """What is written again, and the work that this makes."""
    files = f" and {counted(len(rewrite.files), 'single file', 'single files')}" if rewrite.files else ""
    of = f"{counted(len(rewrite.blocks), 'block', 'blocks')}{files}"
    spec = connection.retry(backbones.current_backbone, Repository(connection, backbones.REPO))
    time = backbones.vector_time(rewrite.kept, spec.name, spec.image_size, prepared=True) if spec is not None else ""
    work = f"{counted(rewrite.kept, 'picture', 'pictures')} to decode and compute again{f', {time}' if time else ''}"
    gone = counted(rewrite.hidden, "removed picture", "removed pictures")
    dropped = f"; the bytes of {gone} go" if rewrite.hidden else ""
    return f"writes {counted(rewrite.made, 'new block', 'new blocks')} in place of {of}: {work}{dropped}"
