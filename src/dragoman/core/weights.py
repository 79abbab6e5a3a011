"""Roughly how many bytes something takes: what limits and checkpoints count."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.model.messages import Message, Part

_FRAME = 64  # the words around a part


def weigh(parts: Iterable[Part]) -> int:
    total = 0
    for part in parts:
        total += _FRAME
        if part.text is not UNSET:
            total += len(part.text)
        elif part.raw is not UNSET:
            total += len(part.raw) * 4 // 3
        elif part.data is not UNSET:
            total += measure(part.data)
        if part.metadata:
            total += measure(part.metadata)
    return total


def weigh_message(message: Message) -> int:
    return weigh(message.parts) + 200 + (measure(message.metadata) if message.metadata else 0)


def measure(value: Any) -> int:
    return len(msgspec.json.encode(value))
