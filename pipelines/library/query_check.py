"""Pictures to search for, decoded before they are put: a bad one is refused, and leaves no entry."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pipelines.errors import LookalikeError
from pipelines.library.picture_sources import PictureSource
from pipelines.library.queries import QueryEntries
from stages.datum.contract import StageError, load
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.decoders import BadPicture
from stages.record.file_kinds import HEAD, kind_of, why_unreadable
from stages.record.framing import PAD, Framing
from stages.record.pfs_names import is_text

_SMALL = Framing(32, PAD)


@contextmanager
def checked(found: QueryEntries) -> Iterator[Callable[[], QueryEntries]]:
    """Decodes the entries of one picture meanwhile. Gives a function that waits, and returns the entries without bad
    pictures, which are among the unreadable files. It raises LookalikeError if none is left.

    Directories and files of many are left to the pipelines, whose sheets list the bad pictures among the good.
    """
    with ThreadPoolExecutor(1) as threads, DecoderProcesses(1) as decoders:
        reasons = [threads.submit(_reason, group[0], decoders) for group in found.groups]

        def good() -> QueryEntries:
            named = zip(found.groups, reasons, strict=True)
            bad = {str(group[0].path): why for group, each in named if (why := each.result())}
            groups = [group for group in found.groups if str(group[0].path) not in bad]
            if not groups:
                path, reason = next(iter(bad.items()))
                raise LookalikeError(f"{path} cannot be searched for: {reason}")
            return QueryEntries(groups, found.left_out, found.unreadable | bad)

        yield good


def _reason(source: PictureSource, decoders: DecoderProcesses) -> str:
    """The reason for which an entry cannot be searched for, "" for none."""
    if "/" in source.name or source.holds_many:
        return ""
    if is_text(source.name):
        try:
            load("stages.filters.entry_question").read_text(source.path)
        except StageError as error:
            return str(error)
        return ""
    data = source.path.read_bytes()
    kind = kind_of(data[:HEAD])
    if not kind.is_picture:
        return why_unreadable(data[:HEAD])
    try:
        decoders.normalise(data, kind, _SMALL)
    except BadPicture as failure:
        return str(failure)
    return ""
