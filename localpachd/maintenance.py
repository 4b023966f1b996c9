"""`python -m localpachd backup|restore|fsck|retention`: work on a root, beside its server or not. Decides nothing."""

import argparse
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from localpachd import backup, root_format
from localpachd.database import Database
from localpachd.errors import DataLoss, FailedPrecondition, PachError
from localpachd.pfs.upkeep import fsck, retention
from localpachd.root_format import DATABASE, SMALL
from localpachd.sqlite import open_existing

COMMANDS = ("backup", "restore", "fsck", "retention")
_DESPITE = "if these files are lost and the others are wanted, add --despite-damage"


def main(arguments: Sequence[str]) -> int:
    """Runs one of the commands; returns the exit status: 1 if it fails, or fsck has found something."""
    given = _parser().parse_args(arguments)
    try:
        match given.command:
            case "backup":
                _say(backup.backup(given.root, given.target), given.target)
            case "restore":
                _say(backup.restore(given.source, given.root), given.root)
            case "fsck":
                if given.despite_damage and not given.adopt:
                    raise FailedPrecondition("--despite-damage belongs to --adopt")
                return _fsck(given.root, given.verify, given.adopt, given.despite_damage)
            case "retention":
                _retention(given.root, given.days)
    except (PachError, OSError, sqlite3.Error) as error:
        print(f"localpachd: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localpachd", description="Works on the root of a localpachd.")
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("backup", help="write a backup, also while the server runs")
    made.add_argument("root", type=Path, metavar="ROOT", help="the server's --root")
    made.add_argument("target", type=Path, metavar="TARGET", help="a new directory, or a new file that ends in .tar")
    made = commands.add_parser("restore", help="make a root from a backup")
    made.add_argument("source", type=Path, metavar="BACKUP", help="the directory or file of a backup")
    made.add_argument("root", type=Path, metavar="ROOT", help="a new directory, for --root")
    made = commands.add_parser("fsck", help="check a root, also while the server runs")
    made.add_argument("root", type=Path, metavar="ROOT", help="the server's --root")
    made.add_argument("--verify", action="store_true", help="read all content, and compare it with its hashes")
    made.add_argument(
        "--adopt",
        action="store_true",
        help="accept the database as the one of the chunks beside it, where a start refuses it; stop the server first",
    )
    made.add_argument(
        "--despite-damage", action="store_true", help="with --adopt: also where files are found that cannot be read"
    )
    made = commands.add_parser("retention", help="show what --retention would squash; changes nothing")
    made.add_argument("root", type=Path, metavar="ROOT", help="the server's --root")
    made.add_argument("--days", type=int, required=True, metavar="N", help="the days of --retention")
    return parser


@contextmanager
def _reading(root: Path) -> Iterator[sqlite3.Connection]:
    """A snapshot of the database of a root. Raises FailedPrecondition for any other directory."""
    if not (root / DATABASE).exists():
        raise FailedPrecondition(f"{root} has no {DATABASE}: it is not the root of a localpachd")
    with open_existing(root / DATABASE) as conn:
        conn.row_factory = sqlite3.Row
        conn.isolation_level = None
        conn.execute("BEGIN")
        yield conn


def _retention(root: Path, days: int) -> None:
    if days < 1:
        raise FailedPrecondition("--days must be at least 1")
    with _reading(root) as conn:
        old = retention.old_sets(conn, days)
        for each in old:
            began = datetime.fromtimestamp(each.started / 1e9, UTC)
            print(f"{each.id} {began:%Y-%m-%d %H:%M} {each.commits} commit{'s'[: each.commits > 1]}")
        size = retention.freed_bytes(conn, [each.id for each in old])
        seen = conn.execute("SELECT COALESCE(MAX(day), 0) FROM days").fetchone()[0]
    print(f"{root}: --retention {days} would squash {len(old)} commit sets and free {size} bytes")
    if seen <= days:
        print(f"the ages of commits have been counted for {seen} days: nothing can be older yet")


def _say(copied: backup.ChunkTotals, place: Path) -> None:
    print(f"{place}: {copied.chunks} chunks with {copied.size} bytes, all verified")


def _fsck(root: Path, verify: bool, adopt: bool, despite_damage: bool) -> int:
    found = 0
    with _reading(root) as conn, open_existing(root / SMALL) as small:

        def problem(digest: bytes) -> str:
            if not verify and small.execute("SELECT 1 FROM small WHERE hash = ?", (digest,)).fetchone():
                return ""
            try:
                backup.chunk(root, small, digest)
            except DataLoss as error:
                return str(error)
            return ""

        for text in fsck.everything(conn, problem):
            print(text)
            found += 1
    adopted = adopt and (not found or despite_damage)
    if adopted:
        _adopt(root)
    if found:
        text = "; adopted" if adopted else f"; not adopted: {_DESPITE}" if adopt else ""
        print(f"{root}: {found} problem{'s'[: found > 1]}{text}", file=sys.stderr)
        return 1
    print(f"{root}: no problems" + ("" if verify else "; content was not read (--verify)"))
    return 0


def _adopt(root: Path) -> None:
    (root / root_format.MARKER).unlink(missing_ok=True)
    with closing(Database(root / DATABASE)) as db:
        root_format.check_database(root, db)
        root_format.mark_database(root, db)
