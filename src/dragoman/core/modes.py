"""Media types an agent takes in: `text/plain`, `image/*`, `*/*`, and older cards' bare words (text, data, file)."""

from collections.abc import Iterable

from msgspec import UNSET

from dragoman.model.errors import ContentTypeNotSupported
from dragoman.model.messages import Part

_WORDS = {"text": "text/*", "data": "application/json", "file": "*/*"}


def admit(parts: Iterable[Part], accepts: tuple[str, ...]) -> None:
    """Raises ContentTypeNotSupported for a part of a type the agent does not take. No types named: it takes all.

    A file that does not say its type is let through: nobody can tell.
    """
    if not accepts:
        return
    known = tuple(_WORDS.get(mode, mode).lower() for mode in accepts)
    for part in parts:
        type = media_type(part)
        if type and not any(_covers(mode, type) for mode in known):
            raise ContentTypeNotSupported(
                f"This agent does not take {type[:100]}; it takes {', '.join(accepts)[:200]}", mediaType=type[:100]
            )


def media_type(part: Part) -> str:
    """The part's type without parameters, by its content where it names none; empty when nobody can tell."""
    named = part.media_type.partition(";")[0].strip().lower()
    if named:
        return named
    if part.text is not UNSET:
        return "text/plain"
    return "application/json" if part.data is not UNSET else ""


def _covers(mode: str, type: str) -> bool:
    return mode in (type, "*/*") or (mode.endswith("/*") and type.startswith(mode[:-1]))
