"""One process per file. The kernel keeps the lock and drops it when the process dies, however it dies."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from dragoman.model.errors import StoreError


class Ownership:
    """An exclusive lock on a file beside the database.

    The lock file is never deleted: if it were, one process could lock the old file and another a new one of the same
    name. Its content is for people only.
    """

    def __init__(self, path: Path) -> None:
        # Links lead to the same database, so they must lead to the same lock.
        self._file = path.resolve()
        self._path = self._file.with_name(self._file.name + "-lock")
        self._fd = -1

    def take(self) -> None:
        """Raises StoreError when somebody else has it, OSError when nobody can."""
        with suppress(FileNotFoundError):
            if os.stat(self._file).st_nlink > 1:
                # SQLite itself loses what is written to one file under two names.
                raise StoreError("The store's file has a second name, a hard link; remove it, or copy the file")
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(fd, 20).decode("ascii", "replace").strip()
            os.close(fd)
            who = f"process {owner}" if owner.isdigit() else "another process"
            raise StoreError(f"The store is in use by {who}; stop it first or choose another store") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd
        # A forked child shares the lock and would keep it past our end.
        os.register_at_fork(after_in_child=self._drop)

    def give_up(self) -> None:
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            self._drop()

    def _drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
