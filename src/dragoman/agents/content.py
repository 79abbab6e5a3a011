"""What authors hand over, as parts: text stays text, bytes a file, everything else becomes data."""

import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, cast

import msgspec

from dragoman.model.messages import Artifact, Message, Part

OCTETS = "application/octet-stream"


def parts_of(*content: Any) -> tuple[Part, ...]:
    """One part per piece; parts, messages and artifacts give their own; None gives nothing."""
    parts: list[Part] = []
    for piece in content:
        parts.extend(_parts(piece))
    return tuple(parts)


def _parts(piece: Any) -> Iterable[Part]:
    if isinstance(piece, Part):
        return (piece,)
    if isinstance(piece, Message | Artifact):
        return piece.parts
    if piece is None:
        return ()
    if isinstance(piece, Enum):
        return _parts(piece.value)
    if isinstance(piece, str):
        return (Part(text=piece),)
    if isinstance(piece, bytes | bytearray | memoryview):
        return (Part(raw=bytes(cast(bytes, piece)), media_type=OCTETS),)
    if is_parts(piece):
        return piece
    inner = getattr(piece, "message", None)
    if isinstance(inner, Message):
        return inner.parts
    return (Part(data=plain(piece)),)


def is_parts(value: Any) -> bool:
    """A list or tuple of nothing but parts: it means those parts, not a data part listing them."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, Part) for item in cast(Sequence[Any], value))


def plain(value: Any) -> Any:
    """A copy made of what JSON knows. Raises TypeError for what has no such form."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_encode)


def _encode(value: Any) -> Any:
    if is_pydantic(type(value)):
        return value.model_dump(mode="json")
    kind = type(value).__name__
    raise TypeError(
        f"A {kind} cannot be sent; use str, bytes, a dict, a Part, or a type msgspec or pydantic can encode"
    )


def is_pydantic(kind: Any) -> bool:
    """Whether this is a pydantic model. Who made one has imported pydantic; we never do."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)
