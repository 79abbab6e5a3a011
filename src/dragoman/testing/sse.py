"""Server-sent events out of bytes, however they were cut."""

from typing import NamedTuple


class Frame(NamedTuple):
    id: str
    event: str
    data: str


class Frames:
    """Feed it bytes, take complete frames. Comments (keepalives) vanish."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Frame]:
        *blocks, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        return [frame for block in blocks if (frame := _frame(block.decode())) is not None]


def _frame(block: str) -> Frame | None:
    fields: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        if name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
    if not fields:
        return None
    return Frame(_last(fields, "id"), _last(fields, "event"), "\n".join(fields.get("data", [])))


def _last(fields: dict[str, list[str]], name: str) -> str:
    return fields[name][-1] if name in fields else ""
