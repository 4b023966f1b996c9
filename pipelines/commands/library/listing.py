"""The command that has pipelines list buckets and fetch what has changed there, without this machine."""

from collections.abc import Sequence
from typing import Annotated

import typer

from pipelines.analysis.measurement import optional_deployment
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.deployment import listing_settings
from pipelines.client.deployment.listing_settings import LISTING
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import optional_pipelines
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, WaitOption
from pipelines.commands.kit.terminal import say
from pipelines.errors import LookalikeError
from stages.record.url_records import LIST, is_store

app = App()


@app.command(
    examples=(
        "lookalike listing s3://bucket/photos --secret bucket",
        "lookalike listing https://example.org/pictures.txt --every '0 3 * * *'",
        "lookalike listing --now",
        "lookalike listing --off  # and what was fetched is no longer in the library",
    )
)
def listing(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL", help="Buckets (s3://, gs://, az://), folders in them, and lists of URLs (.txt)."),
    ] = None,
    every: Annotated[str, typer.Option(metavar="CRON", help="When to list, as cron writes it, in UTC.")] = "0 * * * *",
    secret: Annotated[
        str, typer.Option(metavar="NAME", help="The secret of Pachyderm with the credentials of the buckets.")
    ] = "",
    public: Annotated[bool, typer.Option("--public", help="Ask buckets that everybody may read, unsigned.")] = False,
    endpoint: Annotated[str, typer.Option(metavar="URL", help="Another server with S3's API, such as MinIO.")] = "",
    buckets: Annotated[
        int, typer.Option(min=1, max=65536, help="Files of the listing: a changed object fetches one file's again.")
    ] = 256,
    networks: Annotated[
        str, typer.Option(metavar="CIDR", help="Networks that lists may name though they are not public.")
    ] = "",
    now: Annotated[bool, typer.Option("--now", help="List now, beside the schedule.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Delete these pipelines, and what they fetched.")] = False,
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Let the pipelines keep the pictures of buckets in the library: list at every tick of a clock, fetch what changed.

    Each call names all buckets and settings anew. The first listing starts at once.
    """
    _check(sources or (), secret, now or off)
    if secret and public:
        raise typer.BadParameter("a public bucket is asked without a secret", param_hint="'--public'")
    connection = open_write_connection(address)
    if off:
        optional_pipelines.off(connection, LISTING)
        return
    if sources:
        optional_deployment.check(connection, LISTING)
        optional_deployment.deploy(
            connection,
            LISTING,
            lambda each: say(str(each)),
            listing_settings.patches(sources, every, secret, public, buckets, endpoint, networks),
        )
    elif LISTING not in connection.retry(ProjectJobs(connection).pipelines):
        raise LookalikeError("no bucket is listed yet: `lookalike listing s3://bucket/folder`")
    conclude(connection, "listing", _tick(connection), wait)


def _check(sources: Sequence[str], secret: str, alone: bool) -> None:
    if bool(sources) == alone:
        raise typer.BadParameter("name buckets or lists, or one of --now and --off", param_hint="'URL'")
    for each in sources:
        if not is_store(each) and not each.partition("?")[0].lower().endswith(LIST):
            raise typer.BadParameter(
                f"{each} is neither a bucket (s3://, gs://, az://) nor a list (https://…{LIST})", param_hint="'URL'"
            )
        if any(character.isspace() for character in each):
            raise typer.BadParameter(f"{each!r} has a space: write it as %20", param_hint="'URL'")
    if secret and not any(map(is_store, sources)):
        raise typer.BadParameter("only buckets have credentials", param_hint="'--secret'")


def _tick(connection: Connection) -> str:
    """Has the pipeline list now; returns the commit set."""
    connection.client.run_cron(LISTING, project_name=connection.project)
    return CommitWriter(connection, f"{LISTING}_tick").newest()
