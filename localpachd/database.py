"""The one SQLite database of localpachd: its tables, its single writer, its snapshot readers. Knows no room's rules."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from localpachd import durable_files
from localpachd.disk import Disk
from localpachd.sqlite import FileUsage, ReaderPool, SharedSync, file_usage, shrink, snapshot, transaction

# Times are nanoseconds since the epoch, UTC. `seq` columns give the order of creation.
SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- storage
CREATE TABLE IF NOT EXISTS layers (id INTEGER PRIMARY KEY AUTOINCREMENT, entries INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    layer INTEGER NOT NULL,
    path TEXT NOT NULL,
    tag TEXT NOT NULL,
    size INTEGER NOT NULL,
    chunks BLOB,                 -- 32-byte chunk hashes in order; NULL is a tombstone
    PRIMARY KEY (layer, path, tag)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_tag ON entries (layer, tag);

-- pfs
CREATE TABLE IF NOT EXISTS projects (name TEXT PRIMARY KEY, description TEXT NOT NULL, created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS repos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    description TEXT NOT NULL, created INTEGER NOT NULL,
    UNIQUE (project, name, type)
);
CREATE TABLE IF NOT EXISTS commits (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    repo INTEGER NOT NULL, id TEXT NOT NULL,
    branch TEXT NOT NULL,        -- where it was made; informational
    origin TEXT NOT NULL,        -- USER, AUTO or FSCK
    description TEXT NOT NULL, parent INTEGER,
    started INTEGER NOT NULL, finishing INTEGER, finished INTEGER,
    error TEXT NOT NULL DEFAULT '', size INTEGER,
    UNIQUE (repo, id)
);
CREATE INDEX IF NOT EXISTS commits_by_set ON commits (id);
CREATE INDEX IF NOT EXISTS commits_by_parent ON commits (parent);
CREATE INDEX IF NOT EXISTS commits_finishing ON commits (seq) WHERE finishing IS NOT NULL AND finished IS NULL;
CREATE TABLE IF NOT EXISTS commit_provenance (
    commit_seq INTEGER NOT NULL, upstream INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (commit_seq, upstream)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS commit_subvenance ON commit_provenance (upstream);
CREATE TABLE IF NOT EXISTS commit_layers (
    commit_seq INTEGER NOT NULL,
    part TEXT NOT NULL,          -- 'diff': written into it; 'total': all its content, set when it finishes
    position INTEGER NOT NULL, layer INTEGER NOT NULL,
    PRIMARY KEY (commit_seq, part, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS commits_by_layer ON commit_layers (layer);
CREATE TABLE IF NOT EXISTS forgotten (commit_seq INTEGER PRIMARY KEY); -- commits whose content was dropped
CREATE TRIGGER IF NOT EXISTS nothing_forgotten_without_commit AFTER DELETE ON commits
BEGIN DELETE FROM forgotten WHERE commit_seq = OLD.seq; END;
CREATE TABLE IF NOT EXISTS branches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repo INTEGER NOT NULL, name TEXT NOT NULL, head INTEGER NOT NULL,
    trigger_spec TEXT, created INTEGER NOT NULL,
    UNIQUE (repo, name)
);
CREATE TABLE IF NOT EXISTS branch_provenance (
    branch INTEGER NOT NULL, upstream INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (branch, upstream)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS branch_subvenance ON branch_provenance (upstream);
CREATE TABLE IF NOT EXISTS trigger_ticks (branch INTEGER PRIMARY KEY, at INTEGER NOT NULL); -- of timed triggers
CREATE TRIGGER IF NOT EXISTS no_ticks_without_branch AFTER DELETE ON branches
BEGIN DELETE FROM trigger_ticks WHERE branch = OLD.id; END;
CREATE TABLE IF NOT EXISTS days ( -- that the server has seen pass; see pfs.upkeep.retention
    day INTEGER PRIMARY KEY,
    newest INTEGER NOT NULL      -- the newest commit when it was first seen
);
CREATE TABLE IF NOT EXISTS transactions ( -- kept open by clients
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    content BLOB NOT NULL        -- a TransactionInfo as it goes over the wire
);
CREATE TABLE IF NOT EXISTS filesets (
    id TEXT PRIMARY KEY,         -- known to clients as the id of a commit in the repo __filesets__
    expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fileset_layers (
    fileset TEXT NOT NULL,
    part TEXT NOT NULL,          -- 'replacing' counts instead of entries below; 'appending' is appended to them
    position INTEGER NOT NULL, layer INTEGER NOT NULL,
    PRIMARY KEY (fileset, part, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS filesets_by_layer ON fileset_layers (layer);
CREATE TABLE IF NOT EXISTS cache (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL,         -- a google.protobuf.Any as it goes over the wire
    tag TEXT NOT NULL,
    used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cached_filesets (
    key TEXT NOT NULL, fileset TEXT NOT NULL, PRIMARY KEY (key, fileset)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cached_by_fileset ON cached_filesets (fileset);
CREATE TRIGGER IF NOT EXISTS no_cached_filesets_without_key AFTER DELETE ON cache
BEGIN DELETE FROM cached_filesets WHERE key = OLD.key; END;
CREATE TABLE IF NOT EXISTS metadata (
    kind TEXT NOT NULL, subject NOT NULL,
    content TEXT NOT NULL,       -- JSON of strings by strings
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS no_metadata_without_project AFTER DELETE ON projects
BEGIN DELETE FROM metadata WHERE kind = 'project' AND subject = OLD.name; END;
CREATE TRIGGER IF NOT EXISTS no_metadata_without_repo AFTER DELETE ON repos
BEGIN DELETE FROM metadata WHERE kind = 'repo' AND subject = OLD.id; END;
CREATE TRIGGER IF NOT EXISTS no_metadata_without_branch AFTER DELETE ON branches
BEGIN DELETE FROM metadata WHERE kind = 'branch' AND subject = OLD.id; END;
CREATE TRIGGER IF NOT EXISTS no_metadata_without_commit AFTER DELETE ON commits
BEGIN DELETE FROM metadata WHERE kind = 'commit' AND subject = OLD.seq; END;

-- pps
CREATE TABLE IF NOT EXISTS pipelines (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', stopped INTEGER NOT NULL DEFAULT 0,
    spec TEXT NOT NULL,          -- protojson of the specification with every default filled in
    user_spec TEXT NOT NULL,     -- the specification as sent
    effective_spec TEXT NOT NULL, -- user_spec with the server's and the project's defaults
    spec_commit TEXT NOT NULL, created INTEGER NOT NULL,
    UNIQUE (project, name, version)
);
CREATE TRIGGER IF NOT EXISTS no_metadata_without_pipeline AFTER DELETE ON pipelines
BEGIN DELETE FROM metadata WHERE kind = 'pipeline' AND subject = OLD.project || '/' || OLD.name; END;
CREATE TABLE IF NOT EXISTS defaults (
    project TEXT PRIMARY KEY,    -- '' for the whole server
    spec TEXT NOT NULL,          -- JSON of ClusterDefaults or ProjectDefaults as sent
    created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS no_defaults_without_project AFTER DELETE ON projects
BEGIN DELETE FROM defaults WHERE project = OLD.name; END;
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL, pipeline TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', restart INTEGER NOT NULL DEFAULT 0,
    processed INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0, recovered INTEGER NOT NULL DEFAULT 0,
    stats TEXT NOT NULL DEFAULT '{}',
    created INTEGER NOT NULL, started INTEGER, finished INTEGER,
    UNIQUE (project, pipeline, id)
);
CREATE INDEX IF NOT EXISTS jobs_by_set ON jobs (id);
CREATE INDEX IF NOT EXISTS jobs_by_pipeline ON jobs (project, pipeline, seq);
CREATE INDEX IF NOT EXISTS jobs_unfinished ON jobs (seq) WHERE finished IS NULL;
CREATE TABLE IF NOT EXISTS logs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    ts INTEGER NOT NULL, project TEXT NOT NULL, pipeline TEXT NOT NULL,
    job TEXT NOT NULL, datum TEXT NOT NULL, worker TEXT NOT NULL,
    user INTEGER NOT NULL, master INTEGER NOT NULL, data TEXT NOT NULL, message TEXT NOT NULL,
    level INTEGER NOT NULL DEFAULT 2
);
CREATE INDEX IF NOT EXISTS logs_by_job ON logs (project, pipeline, job);
CREATE INDEX IF NOT EXISTS logs_by_pipeline ON logs (project, pipeline);
"""

FORMAT = 2
"""The version of the root's layout. It is raised when an older server could not read what this one writes."""

T = TypeVar("T")


_WRITER_CACHE = 8000
_READER_CACHE = 1000
"""KiB of pages that a connection keeps. Every change empties a reader's, and the system keeps the file in memory, too;
with more of them a server would grow with its database, times the number of its readers."""


class Database:
    """A SQLite file in WAL mode: one writer at a time, any number of readers on consistent snapshots.

    Every step is durable when it returns, and so are those that it has seen. Readers see it a little earlier.
    """

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self._path = path
        self._disk = disk or Disk(path.parent)
        self._write_lock = threading.Lock()
        self._readers = ReaderPool(lambda: self._connect(_READER_CACHE))
        self._writer = self._connect(_WRITER_CACHE)
        self._writer.execute("PRAGMA journal_mode=WAL")
        with transaction(self._writer):
            self._make_tables()
        self._sync = SharedSync(path)
        # Never open the file itself beside SQLite: closing it would release SQLite's locks, as POSIX has it, and then
        # another process that leaves the database would delete the log.
        durable_files.sync(path.parent)
        self._sync.wait(self._sync.committed())

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `change` as one transaction, and undoes it if it raises; returns when it would survive a power failure.
        Raises NoSpace if the disk is full, FailedPrecondition after it has failed."""
        with self._disk.writing():
            with self._write_lock:
                self._sync.check()
                before = self._writer.total_changes
                with transaction(self._writer):
                    result = change(self._writer)
                number = self._sync.committed() if self._writer.total_changes != before else self._sync.last
            self._sync.wait(number)
        return result

    def flush(self) -> None:
        """Returns when every step that readers see would survive a power failure."""
        self._sync.wait(self._sync.last)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one unchanging snapshot until the block ends. The log of changes grows meanwhile: what
        waits for a client reads through `connection`."""
        with self.connection() as conn, snapshot(conn):
            yield conn

    def connection(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection for reading on which each statement sees a snapshot of its own, unless in `sqlite.snapshot`."""
        return self._readers.one()

    def fact(self, key: str, make: Callable[[], str]) -> str:
        """The value kept under `key`; `make` makes it when it is first asked for."""

        def keep(conn: sqlite3.Connection) -> str:
            conn.execute("INSERT OR IGNORE INTO facts (key, value) VALUES (?, ?)", (key, make()))
            row = conn.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
            return str(row["value"])

        return self.write(keep)

    def usage(self) -> FileUsage:
        """The bytes of the file."""
        with self._readers.one() as conn:
            return file_usage(conn, self._path)

    def shrink(self) -> None:
        """Returns the free part of the file to the disk, if it is large; call it while nothing else uses the file."""
        with self._write_lock:
            shrink(self._writer)

    def close(self) -> None:
        """Closes every idle connection; call it after the last use of the database."""
        with self._write_lock:
            self._writer.close()
        self._readers.close()
        self._sync.close()

    def _make_tables(self) -> None:
        """Makes the tables that are missing."""
        for statement in _statements(SCHEMA):
            self._writer.execute(statement)
        self._writer.execute(f"PRAGMA user_version={FORMAT}")

    def _connect(self, cache: int) -> sqlite3.Connection:
        # The lock and the pool keep a connection to one thread at a time.
        conn = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=60)
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA synchronous=NORMAL")  # at checkpoints; `write` syncs the log
        conn.execute(f"PRAGMA cache_size=-{cache}")
        return conn


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: `executescript` would commit the transaction around it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
