"""How mistakes in settings are put into words, wherever the settings came from."""

from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin


def plain(error: Exception, kind: Any = None) -> str:
    """msgspec's sentence without its path and type syntax; the caller names the key and shows the value. Where `kind`
    is a choice, all there is to choose from."""
    if get_origin(kind) is Literal:
        return f"Expected one of {', '.join(filter(None, get_args(kind)))}"
    return str(error).split(" - at `")[0].split(", got `")[0].replace("`", "")


def suggest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """What an unknown word may have been meant to be, else all there are."""
    import difflib  # only who made a mistake pays for it

    close = difflib.get_close_matches(word, list(known), n=1)
    if close:
        return f" Did you mean {prefix}{close[0]}?"
    return f" Known: {', '.join(sorted(known))}."
