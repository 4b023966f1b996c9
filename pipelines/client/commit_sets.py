"""Moments of a library: the commit set that a commit's id, an ancestor or a date means. Knows no files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.errors import LookalikeError
from pipelines.specifications.pipeline_specs import SOURCES
from stages.datum.text_format import first_of

ANSWERS = "render"
"""The repo that every change of a library reaches: its commits are the moments at which there were answers."""

_ID = re.compile(r"[0-9a-f]{12}4[0-9a-f]{19}")
_START = re.compile(r"[0-9a-f]{4,32}")
_ANCESTOR = re.compile(r"(?:(?P<repo>[\w-]+)@)?(?P<start>[\w-]+)(?P<steps>(?:\^\d*)+|(?:~\d*)+|\.\d+|)")
_DATE = re.compile(
    r"\d{4}-(\d\d-\d\d|W\d\d-\d)(?P<time>[T ]\d\d(:?\d\d(?P<seconds>:?\d\d)?)?)?(?P<fraction>[.,]\d+)?.*"
)
_DAYS = {"now": 0, "today": 0, "yesterday": 1}
"""The days before this one that words stand for."""

_WAS = re.compile(r"\(was ([0-9a-f]{32}) of ([^()]+)\)")
_SHORT_HOUR = re.compile(r"^(\d{4}-\d\d-\d\d)[T ](\d:)")
_DIGITS = 32
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class OriginalCommit:
    """The commit that an imported one was where it was exported: its id, and its start."""

    id: str
    started: datetime


@dataclass(frozen=True, slots=True)
class CommitSet:
    """A commit set: its id and its start (UTC), that of the original for an imported commit; whether its answers are
    complete; and the ids that it had elsewhere."""

    id: str
    started: datetime
    good: bool
    were: tuple[str, ...] = ()


def origins(description: str) -> list[OriginalCommit]:
    """The commits that an imported commit was before, as its description says, the first one first; none for
    others."""
    return [
        OriginalCommit(id_, datetime.fromisoformat(began).astimezone(UTC))
        for id_, began in _WAS.findall(description)
        if began
    ]


def first_id(commit: str, description: str) -> str:
    """The id of the commit set that a commit was made in, which is another one if it was imported since."""
    before = origins(description)
    return before[0].id if before else commit


def commit_at(connection: Connection, text: str) -> str:
    """The id of the commit set that a text means: an id or the unique start of one, also of a commit before its import;
    an ancestor such as master^ or images@master~2, without a repo counted in all changes; or a date, see `end_of`, for
    the newest commit set with answers that began by then.

    Raises LookalikeError for a text that means none or several.
    """
    text = _as_date(text.strip())
    if _DATE.fullmatch(text):
        return _at_date(connection, text)
    found = _ANCESTOR.fullmatch(text)
    if found is None:
        raise _invalid(text)
    repo, start, steps = found["repo"] or "", found["start"], found["steps"]
    if _START.fullmatch(start):
        start = _by_id(connection, start)
        if not steps:
            return start
    named = _ancestor(connection, repo, start + steps)
    if named is None and not repo and not steps:
        raise _invalid(text)
    if named is None:
        raise LookalikeError(
            f"there is no commit {text}: no branch or repo has that name, or its history is shorter; "
            f"`lookalike commits{f' {repo}' if repo else ''}` lists the commits"
        )
    return named


def list_commit_sets(connection: Connection) -> list[CommitSet]:
    """The commit sets that have answers, or are to have some, the newest first; those of the source repos where no
    pipeline has computed answers yet."""
    made = {info.commit.id: info for repo in SOURCES for info in commit_infos(connection, repo)}
    computed = list(commit_infos(connection, ANSWERS))
    if not computed:
        computed = sorted(made.values(), key=lambda info: int(info.started.ToNanoseconds()), reverse=True)
    return [_moment(info, made.get(info.commit.id)) for info in computed]


def end_of(text: str) -> datetime:
    """The end (UTC) of the day, hour, minute or second that a date names, exclusive: one as in ISO 8601, in this
    machine's zone unless it names one, or "today", "yesterday" and "now", also with a time behind them. Where clocks go
    back, a time that comes twice is its first one. Raises LookalikeError for a date or time that does not exist."""
    text = _as_date(text)
    found = _DATE.fullmatch(text)
    try:
        begins = datetime.fromisoformat(text)
        if found is None or found["fraction"]:
            return _in_utc(begins) + timedelta(microseconds=1)
        unit = timedelta(days=1)
        if time := found["time"]:
            minutes = len(time.replace(":", "")) > len("T00")
            unit = timedelta(seconds=1) if found["seconds"] else timedelta(minutes=1) if minutes else timedelta(hours=1)
        return _in_utc(begins + unit)
    except (ValueError, OverflowError, OSError) as error:
        raise LookalikeError(
            f"{text!r} is not a valid date: write it as 2026-11-01, '2026-11-01 14:30', 2026-11-01T14:30:00+01:00 or "
            "yesterday"
        ) from error


def is_to_come(text: str) -> bool:
    """Whether a text is a date that means the present, since the end of it is yet to come: today's, or a later one."""
    dated = _as_date(text.strip())
    return _DATE.fullmatch(dated) is not None and end_of(dated) > datetime.now(UTC)


def commit_infos(connection: Connection, repo: str, kind: int = pfs_pb2.ORIGIN_KIND_UNKNOWN) -> Iterator[Any]:
    """The CommitInfos of a repo's master, the newest first; none for a missing repo. kind: of their origin."""
    head = connection.commit(repo, "")
    call = connection.pfs.ListCommit(pfs_pb2.ListCommitRequest(repo=head.repo, to=head, all=True, origin_kind=kind))
    try:
        with suppress_not_found():
            yield from call
    finally:
        call.cancel()  # the rest, if there is any


def start_time(connection: Connection, commit_set: str) -> datetime | None:
    """The start of a commit set (UTC); None if there is none of that id."""
    infos = connection.pfs.InspectCommitSet(
        pfs_pb2.InspectCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit_set))
    )
    with suppress_not_found():
        return min(
            (info.started.ToDatetime(tzinfo=UTC) for info in infos if info.commit.id == commit_set), default=None
        )
    return None


def inspect_commit(connection: Connection, repo: str, commit_set: str, type_: str = "user") -> Any | None:
    """The description of a repo's commit of a commit set, or of that in the set's provenance; None if it has none."""
    with suppress_not_found():
        return connection.inspect(connection.commit(repo, commit_set, type_))
    return None


def _as_date(text: str) -> str:
    """The date for a word that stands for one, and hours of two digits; other texts as they are."""
    word, _, time = text.partition(" ")
    if word in _DAYS:
        text = f"{date.today() - timedelta(days=_DAYS[word])} {time.strip()}".rstrip()
    return _SHORT_HOUR.sub(r"\1 0\2", text)


def _in_utc(moment: datetime) -> datetime:
    """A moment in UTC. Of a time that comes twice in this machine's zone the first, and for one that is skipped when
    clocks go forward the same time after that."""
    either = [moment.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
    shown = [each for each in either if moment.tzinfo or each.astimezone().replace(tzinfo=None) == moment]
    return min(shown, default=max(either))


def _at_date(connection: Connection, text: str) -> str:
    end = end_of(text)
    moments = list_commit_sets(connection)
    by_then = [each for each in moments if each.started < end]
    for each in by_then:
        if each.good:
            return each.id
    if by_then:
        raise LookalikeError(f"no commit begun by {text} has answers: its jobs failed or go on, see `lookalike jobs`")
    if not moments:
        raise LookalikeError(f"there are no commits yet, so none at {text}: add pictures with `lookalike add`")
    first = min(each.started for each in moments).astimezone()
    raise LookalikeError(
        f"{text} is before the first commit, which began at {first:%Y-%m-%dT%H:%M:%S}: name a later date, or see "
        "`lookalike commits`"
    )


def _by_id(connection: Connection, start: str) -> str:
    """The commit set whose id begins so, or whose commit had such an id where it was exported."""
    if _ID.fullmatch(start) and start_time(connection, start) is not None:
        return start
    moments = list_commit_sets(connection)
    found = [each.id for each in moments if each.id.startswith(start)]
    found = found or [each.id for each in moments if any(was.startswith(start) for was in each.were)]
    if len(found) == 1:
        return found[0]
    if found:
        raise LookalikeError(f"{start} begins the ids of {first_of(found, _MOST_NAMED)}: give more digits")
    none = f"there is no commit {start}" if len(start) == _DIGITS else f"no commit has an id that begins with {start}"
    raise LookalikeError(
        f"{none}: it was squashed or deleted, or belongs to another library; "
        "`lookalike commits` lists those that are left"
    )


def _ancestor(connection: Connection, repo: str, expression: str) -> str | None:
    """The id of a commit as Pachyderm understands it; None if there is none."""
    try:
        return str(connection.inspect(connection.commit(repo or ANSWERS, expression)).commit.id)
    except grpc.RpcError as error:
        if error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNKNOWN):
            raise
        return None


def _invalid(text: str) -> LookalikeError:
    return LookalikeError(
        f"{text!r} is not a valid commit or date: name an id or its start (`lookalike commits` lists them), "
        "an ancestor such as master^2, or a date such as 2026-11-01, '2026-11-01 14:30' or yesterday"
    )


def _moment(info: Any, made: Any) -> CommitSet:
    """made: the commit of a source repo in the same set, None for that of a deployment."""
    before = origins(made.description) if made is not None else []
    began = before[0].started if before else info.started.ToDatetime(tzinfo=UTC)
    good = info.HasField("finished") and not info.error
    return CommitSet(info.commit.id, began, good, tuple(each.id for each in before))
