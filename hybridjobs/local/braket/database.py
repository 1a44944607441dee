"""The endpoint's database: SQLite in WAL mode with an outbox of events that is written with what they tell of.

One process owns the file (exclusive lock); its threads share one connection behind one lock.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SCHEMA = "CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL)"

Values = Sequence[object] | Mapping[str, object]


class Database:
    """Transactions, queries and the outbox; `new_events` is set whenever the outbox gets an entry.

    sqlite3.OperationalError when another process has the file open.
    """

    def __init__(self, file: Path):
        file.parent.mkdir(parents=True, exist_ok=True)
        self.new_events = threading.Event()
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=10)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(_SCHEMA)

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._connection.close()

    def create_tables(self, script: str) -> None:
        """Run the statements of a schema."""
        with self._lock:
            self._connection.executescript(script)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the lock and one transaction; an exception inside rolls it back."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def execute(self, statement: str, values: Values = ()) -> int:
        """Run one statement; the number of the row that an INSERT made."""
        with self._lock:
            return self._connection.execute(statement, values).lastrowid or 0

    def rows(self, query: str, values: Values = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def row(self, query: str, values: Values = ()) -> sqlite3.Row | None:
        """Return the first row of a query."""
        found = self.rows(query, values)
        return found[0] if found else None

    def count(self, query: str, values: Values = ()) -> int:
        """Return the number that a counting query answers."""
        return int(self.rows(query, values)[0][0])

    def post(self, entry: Mapping[str, Any]) -> None:
        """Put an event into the outbox, within the transaction of the change it tells of."""
        self.execute("INSERT INTO outbox (entry) VALUES (?)", [json.dumps(entry)])
        self.new_events.set()

    def pending_events(self, limit: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the oldest undelivered events with their numbers."""
        rows = self.rows("SELECT number, entry FROM outbox ORDER BY number LIMIT ?", [limit])
        return [(row["number"], json.loads(row["entry"])) for row in rows]

    def drop_event(self, number: int) -> None:
        """Forget a delivered event."""
        self.execute("DELETE FROM outbox WHERE number = ?", [number])
