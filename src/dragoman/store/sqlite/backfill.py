"""Moves the write-ahead log into the file on a thread of its own, so that no append waits for those fsyncs.

SQLite lets this run beside the writer. Under a load that never pauses it cannot catch up for good; then the writer's
own automatic checkpoint, at a larger size, finds little left to do.
"""

import sqlite3
from pathlib import Path
from queue import SimpleQueue
from threading import Thread


class Backfill:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._thread: Thread | None = None

    def nudge(self) -> None:
        """There is enough to move. Called by the writer; the thread begins with the first call."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="store-backfill", daemon=True)
            self._thread.start()
        if self._wanted.empty():
            self._wanted.put(True)

    def stop(self) -> None:
        if self._thread is not None:
            self._wanted.put(False)
            self._thread.join()

    def _run(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            while self._wanted.get():
                try:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                except sqlite3.Error:
                    # A full or failing disk; the log keeps everything, and the writer will say so when it matters.
                    continue
        finally:
            connection.close()
