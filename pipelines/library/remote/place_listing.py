"""What a sync of a bucket or a list would do, and the pictures that have gone there and go from the library too.

A picture goes only if this machine fetched it from that place, the library still has those bytes, and the place was
read whole. Of anything else nobody knows that it came from there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.picture_hashes import digest
from pipelines.library.remote import remote_ingest
from pipelines.library.remote.fetch_journal import FetchJournal
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import PictureUrl
from pipelines.library.snapshots import REPO, LibrarySnapshot, open_library
from stages.datum.text_format import counted

_FEW = 20
"""Up to so many pictures may go at once though most of a place's do."""


@dataclass
class SyncPlan:
    """What differs, as far as a listing tells. added: names of new pictures. asked: the number of those whose server
    has to be asked whether they have changed."""

    added: list[str] = field(default_factory=list)
    asked: int = 0
    unchanged: int = 0


def plan(connection: Connection, journal: FetchJournal, pictures: Iterable[PictureUrl | ListProblem]) -> SyncPlan:
    """Reads a listing and fetches nothing."""
    journal.hold(remote_ingest.held_names(connection))
    found = SyncPlan()
    for each in pictures:
        if isinstance(each, ListProblem) or journal.take(each.name, each.url):
            continue
        held = journal.find(each.name, each.url)
        if held is None:
            found.added.append(each.name)
        elif remote_ingest.is_same(held, each.version):
            found.unchanged += 1
        else:
            found.asked += 1
    return found


def vanished(connection: Connection, journal: FetchJournal, place: str, allow_empty: bool = False) -> list[str]:
    """The names of the pictures that are to go, sorted. To be asked once the place has been read whole. Raises
    LookalikeError for a place that has lost all or most of its pictures, unless `allow_empty`."""
    gone, kept = journal.vanished(place)
    found = sorted(_as_fetched(connection, gone)) if gone else []
    if found and not allow_empty and (not kept or len(found) > max(_FEW, kept)):
        has = f"only {kept:,} of" if kept else "none of"
        raise LookalikeError(
            f"{place} has {has} the {counted(len(found) + kept, 'picture', 'pictures')} that were there: is it "
            "complete? Nothing was removed; --allow-empty removes the others"
        )
    return found


def _as_fetched(connection: Connection, hashes: Mapping[str, str]) -> list[str]:
    """Of these pictures those that the library has with these bytes."""
    with open_library(connection, connection.retry(CommitWriter(connection, REPO).newest)) as library:
        return [name for name, sha256 in hashes.items() if connection.retry(_hash, library, name) == sha256]


def _hash(library: LibrarySnapshot, name: str) -> str:
    home = library.home(name)
    if home is not None:
        return library.hashes(home)[name]
    files = library.files(name)
    return digest(library.content(files[0])) if files else ""
