"""Backups of a root: its database as of one moment, the chunks that this refers to, and the secrets. Knows no server.

A backup is a directory, or a tar with the same members. It can be made while a server runs: chunks never change, and
one that a sweep takes away meanwhile lies in the trash for a day. Every chunk is compared with its hash, in a backup
and in a restore; the other files have theirs in `backup.json`, the last member.
"""

import json
import os
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from localpachd import durable_files, root_format
from localpachd.database import FORMAT, Database
from localpachd.errors import DataLoss, FailedPrecondition
from localpachd.ids import chunk_hash
from localpachd.root_format import CHUNKS, DATABASE, DRAFT, SMALL
from localpachd.sqlite import open_existing
from localpachd.storage import big_chunks, garbage_collector
from localpachd.storage.small_chunks import SmallChunks

_CONTENTS = "backup.json"
_SECRETS = "secrets"
_MEMBER = re.compile(
    rf"{re.escape(DATABASE)}|{re.escape(SMALL)}|{_CONTENTS}|{_SECRETS}/[^/]+\.json|{CHUNKS}/[0-9a-f]{{2}}/[0-9a-f]{{62}}"
)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ChunkTotals:
    """The number of chunks, and their bytes."""

    chunks: int
    size: int


def backup(root: Path, target: Path) -> ChunkTotals:
    """Writes a backup into a new directory or, if its name ends in `.tar`, a new file. On the disk of the root big
    chunks are hard links. Raises FailedPrecondition, DataLoss if a chunk is damaged, OSError."""
    if not (root / DATABASE).exists():
        raise FailedPrecondition(f"{root} has no {DATABASE}: it is not the root of a localpachd")
    if target.exists() and (target.is_file() or any(target.iterdir())):
        raise FailedPrecondition(f"{target} exists already: name a new directory, or a new file that ends in .tar")
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".backup-", dir=target.parent) as draft:
        whole = Path(draft, "backup")
        whole.mkdir(mode=0o700)
        _copy_database(root / DATABASE, whole / DATABASE)
        copied = _copy_chunks(root, whole)
        _copy_secrets(root / _SECRETS, whole / _SECRETS)
        _write_contents(whole)
        os.sync()
        if target.suffix == ".tar":
            _pack(whole, Path(draft, "tar"))
            whole = Path(draft, "tar")
            durable_files.sync(whole)
        elif target.exists():
            target.rmdir()
        whole.replace(target)
        durable_files.sync(target.parent)
    return copied


def restore(source: Path, root: Path) -> ChunkTotals:
    """Makes a root from a backup; it must not exist, be empty, or hold what a restore that failed has left. Raises
    FailedPrecondition for what is not a whole backup, DataLoss if it is damaged, OSError."""
    draft = root / DRAFT
    if root.exists() and any(root.iterdir()) and not draft.exists():
        raise FailedPrecondition(f"{root} is not empty: restore into a new directory")
    durable_files.make_directory(root, 0o700)
    draft.touch()
    for left in root.iterdir():  # by a restore that failed
        if left != draft:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    # The marker comes last: without it no server starts on a part.
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file():
                _copy(path, _place(root, str(path.relative_to(source)), source))
    else:
        _unpack(source, root)
    _check_contents(source, root)
    sizes = [len(data) for _, data, _ in _verified(root, root / DATABASE, "use another backup")]
    (root / _CONTENTS).unlink()
    draft.unlink()
    os.sync()
    with closing(Database(root / DATABASE)) as db:
        root_format.check_database(root, db)
        root_format.mark_database(root, db)
    return ChunkTotals(len(sizes), sum(sizes))


def chunk(root: Path, small: sqlite3.Connection, digest: bytes) -> tuple[bytes, Path | None]:
    """A chunk of a root that a server may be using, compared with its hash, and its file if it has one. DataLoss."""
    row = small.execute("SELECT data FROM small WHERE hash = ?", (digest,)).fetchone()
    if row is not None:
        if chunk_hash(row[0]) != digest:
            raise big_chunks.damaged(digest)
        return row[0], None
    name = digest.hex()
    # In this order, and again: a server may be moving it.
    for place in (f"{name[:2]}/{name[2:]}", f"trash/{name}", f"{name[:2]}/{name[2:]}"):
        with suppress(FileNotFoundError):
            return big_chunks.verified(root / CHUNKS / place, digest), root / CHUNKS / place
    raise big_chunks.missing(digest)


def _copy_database(source: Path, target: Path) -> None:
    with open_existing(source) as conn, closing(sqlite3.connect(target)) as copy:
        (version,) = conn.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise FailedPrecondition(
                f"{source} has the format {version}, not {FORMAT}: use the localpachd that wrote it"
            )
        conn.backup(copy)  # in one step, so of one moment
    target.chmod(0o600)


def _live(database: Path) -> Iterator[bytes]:
    """The chunks that a database refers to, each once, in the order of their hashes."""
    with open_existing(database) as conn, closing(sqlite3.connect("", isolation_level=None)) as known:
        known.execute("CREATE TABLE live (hash BLOB PRIMARY KEY) WITHOUT ROWID")
        known.execute("BEGIN")
        known.executemany(
            "INSERT OR IGNORE INTO live VALUES (?)", ((digest,) for digest in garbage_collector.live_chunks(conn))
        )
        yield from (row[0] for row in known.execute("SELECT hash FROM live ORDER BY hash"))


def _verified(root: Path, database: Path, fix: str) -> Iterator[tuple[bytes, bytes, Path | None]]:
    """The hash of each chunk of a root that a database refers to, with what `chunk` gives. Raises DataLoss at the end,
    with the fix, if some are damaged."""
    lost: list[str] = []
    with open_existing(root / SMALL) as small:
        for digest in _live(database):
            try:
                data, path = chunk(root, small, digest)
            except DataLoss as error:
                lost.append(str(error))
            else:
                yield digest, data, path
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        raise DataLoss(f"{'; '.join(lost[:_SHOWN])}{more}: {fix}")


def _copy_chunks(root: Path, whole: Path) -> ChunkTotals:
    (whole / CHUNKS).mkdir(mode=0o700)
    count = size = 0
    fix = f"python -m localpachd fsck --verify {root} names the files; put the same bytes again, or remove them"
    with closing(SmallChunks(whole / SMALL)) as copy:
        for digest, data, path in _verified(root, whole / DATABASE, fix):
            count, size = count + 1, size + len(data)
            if path is None:
                copy.put(digest, data)
            else:
                name = digest.hex()
                target = whole / CHUNKS / name[:2] / name[2:]
                target.parent.mkdir(exist_ok=True)
                _link(path, target, root / CHUNKS / name[:2] / name[2:])
    return ChunkTotals(count, size)


def _link(path: Path, target: Path, other: Path) -> None:
    try:
        os.link(path, target)
    except OSError:
        try:
            shutil.copyfile(path, target)
        except FileNotFoundError:  # it was moved meanwhile
            shutil.copyfile(other, target)


def _copy_secrets(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for path in sorted(source.glob("[!.]*.json")):
        with suppress(FileNotFoundError):  # deleted meanwhile
            _copy(path, target / path.name)


def _write_contents(whole: Path) -> None:
    files = {name: _hash(whole / name) for name in (DATABASE, *_secrets(whole))}
    text = json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n"
    (whole / _CONTENTS).write_text(text)


def _check_contents(source: Path, root: Path) -> None:
    try:
        found = json.loads((root / _CONTENTS).read_text())
        version, files = int(found["format"]), dict(found["files"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        raise FailedPrecondition(f"{source} is not a whole backup: it has no valid {_CONTENTS}") from None
    if version != FORMAT:
        raise FailedPrecondition(f"{source} has the format {version}, not {FORMAT}: use the localpachd that wrote it")
    for name in (DATABASE, *_secrets(root)):
        if not (root / name).exists() or files.pop(name, "") != _hash(root / name):
            raise DataLoss(f"{source} is damaged: {name} is not what was backed up")
    if files:
        raise DataLoss(f"{source} is damaged: {', '.join(sorted(files))} is missing")


def _secrets(directory: Path) -> list[str]:
    return sorted(f"{_SECRETS}/{path.name}" for path in (directory / _SECRETS).glob("[!.]*.json"))


def _pack(whole: Path, target: Path) -> None:
    with tarfile.open(target, "x") as tar:
        target.chmod(0o600)
        for path in sorted(whole.rglob("*"), key=lambda each: (each.name == _CONTENTS, str(each))):
            if path.is_file():
                tar.add(path, str(path.relative_to(whole)))


def _unpack(source: Path, root: Path) -> None:
    try:
        with tarfile.open(source) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is None:
                    raise FailedPrecondition(f"{source} is not a backup: {member.name} is not a file")
                with _place(root, member.name, source).open("xb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
                    os.fchmod(file.fileno(), 0o600)
    except tarfile.TarError as error:
        raise FailedPrecondition(f"{source} is not a whole backup: {error}") from error


def _place(root: Path, name: str, source: Path) -> Path:
    """Where a member goes, which must be one that backups have."""
    if not _MEMBER.fullmatch(name):
        raise FailedPrecondition(f"{source} is not a backup: it holds {name}")
    place = root / name
    for directory in (root / name.partition("/")[0], place.parent):
        if "/" in name and not directory.exists():
            directory.mkdir(mode=0o700)
    return place


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o600)


def _hash(path: Path) -> str:
    digest = blake2b(digest_size=32)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
