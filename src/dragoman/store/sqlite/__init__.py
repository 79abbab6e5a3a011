"""Logs in one SQLite file, which one process owns.

    store       the port: collects what waits, reads for whoever asks     (the event loop's thread)
    group       decides what one transaction writes and what each caller hears            (pure)
    recent      heads and stretches of logs in memory, shared by all readers
    writer      the thread that owns the writing connection
    backfill    the thread that moves the write-ahead log into the file
    reading     rows to model objects
    ownership   the lock that keeps a second process out
    schema      migrations; statements   the SQL, by name

The loop decides, the writer only executes: while a group is being written, the loop neither waits nor guesses, because
the next group is decided when this one's outcome is known. So all state has one owner and no lock.
"""

from dragoman.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
