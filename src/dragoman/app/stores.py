"""Which store a URL means: memory://, sqlite:///relative.db, sqlite:////absolute.db, or a bare path."""

from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from dragoman.app.settings import SettingsError

Synchronous = Literal["NORMAL", "FULL"]
SYNCHRONOUS: tuple[Synchronous, ...] = ("NORMAL", "FULL")


class MemoryChoice(Struct, frozen=True):
    """Nothing is kept; for tests and throw-away agents."""


class SqliteChoice(Struct, frozen=True):
    path: Path
    synchronous: Synchronous = "NORMAL"


StoreChoice = MemoryChoice | SqliteChoice


def choose(url: str) -> StoreChoice:
    """Read a store URL. Raises SettingsError, with the forms that would do."""
    if "://" not in url:
        if not url.strip():
            raise _unusable(url, "it is empty")
        return SqliteChoice(Path(url).expanduser())
    split = urlsplit(url)
    if split.scheme == "memory":
        if split.netloc or split.path.strip("/") or split.query:
            raise _unusable(url, "memory:// takes nothing behind it")
        return MemoryChoice()
    if split.scheme != "sqlite":
        raise _unusable(url, f"there is no store called {split.scheme}")
    if split.netloc:
        raise _unusable(url, "a relative path takes three slashes, an absolute one four")
    path = unquote(split.path.removeprefix("/"))
    if not path or path.endswith("/"):
        raise _unusable(url, "it names no file")
    return SqliteChoice(Path(path).expanduser(), _synchronous(url, split.query))


def _synchronous(url: str, query: str) -> Synchronous:
    options = {name.lower(): value for name, value in parse_qsl(query, keep_blank_values=True)}
    mode = options.pop("synchronous", "NORMAL").upper()
    if options:
        raise _unusable(url, f"{next(iter(options))} is not an option; synchronous is")
    for known in SYNCHRONOUS:
        if mode == known:
            return known
    raise _unusable(url, f"synchronous is one of {', '.join(SYNCHRONOUS)}")


def _unusable(url: str, why: str) -> SettingsError:
    shown = url.split("@")[-1]  # whatever stands before an @ may be a password
    return SettingsError(
        f"Cannot use the store {shown!r}: {why}. "
        "Use memory://, sqlite:///relative.db, sqlite:////absolute.db or a path; ?synchronous=FULL survives power loss."
    )
