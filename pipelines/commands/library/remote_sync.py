"""A bucket, a directory of it or a list of URLs, mirrored in the library by the command that mirrors folders."""

from collections.abc import Iterator
from contextlib import closing

from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude_all
from pipelines.commands.kit.terminal import say, say_all, say_json
from pipelines.commands.library import remote_add, stated_facts
from pipelines.commands.library.compact import propose
from pipelines.errors import LookalikeError
from pipelines.library import ingest
from pipelines.library.remote import place_listing
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import PictureUrl, RemoteOptions
from pipelines.library.remote.remote_ingest import RemoteResult
from pipelines.library.snapshots import REPO


def sync(place: str, options: RemoteOptions, dry_run: bool, allow_empty: bool) -> None:
    """Makes the library's pictures of a place equal to it, as far as they were fetched from there."""
    mirror = _Mirror(place, options, dry_run)
    with closing(mirror.journal):
        mirror.show(allow_empty) if dry_run else mirror.run(allow_empty)


class _Mirror:
    """A place, and the pictures of the library that were fetched from there."""

    def __init__(self, place: str, options: RemoteOptions, dry_run: bool) -> None:
        self._place = place
        self._named = remote_add.place_of(place, options.folder)
        self._options = options
        self._fetcher = remote_add.fetching(options.networks)
        self._connection = (open_connection if dry_run else open_write_connection)(options.address)
        self._problems: list[ListProblem] = []
        self.journal: FetchJournal = remote_add.open_journal(self._connection)

    def show(self, allow_empty: bool) -> None:
        """Says what differs, as far as the listing tells."""
        planned = place_listing.plan(self._connection, self.journal, self._listed())
        gone = self._gone(allow_empty)
        say_all(f"{each.line}: {each.reason}, so nothing would be removed" for each in self._problems)
        say_all(f"would add {each}" for each in planned.added)
        say_all(f"would remove {each}" for each in gone)
        say(
            f"{self._place}: would add {len(planned.added):,} and remove {len(gone):,}, and ask whether "
            f"{planned.asked:,} have changed; {planned.unchanged:,} unchanged"
        )
        if self._options.as_json:
            told = {"commits": [], "added": planned.added, "removed": gone}
            say_json({**told, "asked": planned.asked, "unchanged": planned.unchanged})

    def run(self, allow_empty: bool) -> None:
        """Fetches what is missing or has changed, and then removes what has gone."""
        result, failures = remote_add.fetch(
            self._connection, self.journal, self._listed(), self._fetcher, self._options, lambda _: lambda _: None
        )
        refused, removed, commits = "", list[str](), [*result.commits]
        try:
            if (gone := self._gone(allow_empty)) and (written := ingest.forget(self._connection, gone)) is not None:
                removed = written.names
                commits.append(written.commit)
        except LookalikeError as error:
            refused = str(error)
        self.journal.settle(self._named, whole=not (self._problems or refused))
        rejected = self._conclude(result, removed, commits)
        stated_facts.put_attributes(self._connection, [self._place], result.stated, self._options)
        stated_facts.put_labels(self._connection, [self._place], result.labels)
        propose(self._connection)
        if self._options.as_json:
            told = {"commits": commits, "put": result.put, "replaced": result.replaced, "removed": removed}
            say_json({**told, "unchanged": result.unchanged, "failures": dict(result.failures), "rejected": rejected})
        if refused:
            raise LookalikeError(refused)
        failures.conclude(result.failures.total())

    def _listed(self) -> Iterator[PictureUrl | ListProblem]:
        for each in remote_add.pictures([self._place], self._options.folder, self._fetcher):
            if isinstance(each, ListProblem):
                self._problems.append(each)
            yield each

    def _gone(self, allow_empty: bool) -> list[str]:
        """The pictures to remove: none if a line of the list may have named one of them."""
        if self._problems:
            return []
        return place_listing.vanished(self._connection, self.journal, self._named, allow_empty)

    def _conclude(self, result: RemoteResult, removed: list[str], commits: list[str]) -> object:
        """Waits for what was put and removed, and says it."""
        put = UploadedNames(REPO, result.names)
        done = dict.fromkeys(commits, "")
        rejected = conclude_all(self._connection, done, self._options.wait, put) if done else []
        counts = result.put - result.replaced, result.replaced, len(removed), result.unchanged
        if done:
            said = "synced {}: {:,} added, {:,} changed, {:,} removed, {:,} unchanged"
            say(said.format(self._place, *counts))
        else:
            say(f"{self._place}: nothing to change, {result.unchanged:,} unchanged")
        if self._problems:
            say(f"nothing was removed, since {self._problems[0].line} names no picture")
        return rejected
