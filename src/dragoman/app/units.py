"""Durations and sizes as people write them: "24h", "15s", 90; "8MiB", "64k", 1048576. And what nobody is shown."""

import re

_SPANS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SIZES = (
    {"": 1, "b": 1}
    | {"k": 1024, "kib": 1024, "m": 1024**2, "mib": 1024**2, "g": 1024**3, "gib": 1024**3}
    | {"kb": 1000, "mb": 1000**2, "gb": 1000**3}
)
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


class Seconds(float):
    """A duration. A bare number means seconds."""

    @classmethod
    def read(cls, value: object) -> "Seconds":
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return cls(value)
        if isinstance(value, str) and (match := _NUMBER.fullmatch(value)):
            unit = match[2].lower() or "s"
            if unit in _SPANS:
                return cls(round(float(match[1]) * _SPANS[unit], 6))
        raise ValueError('Expected a duration such as "90s", "15m", "24h" or a number of seconds')

    @property
    def ms(self) -> int:
        return round(self * 1000)

    def __str__(self) -> str:
        if self == 0:
            return "0s"
        for unit in ("d", "h", "m", "s"):
            count = self / _SPANS[unit]
            if count >= 1 and count == int(count) and not (unit == "d" and count == 1):
                return f"{int(count)}{unit}"
        return f"{self.ms}ms"


class Bytes(int):
    """A size. A bare number means bytes; k, M and G count in 1024s, kB, MB and GB in 1000s."""

    @classmethod
    def read(cls, value: object) -> "Bytes":
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return cls(value)
        if isinstance(value, str) and (match := _NUMBER.fullmatch(value)) and match[2].lower() in _SIZES:
            return cls(float(match[1]) * _SIZES[match[2].lower()])
        raise ValueError('Expected a size such as "8MiB", "64KiB" or a number of bytes')

    def __str__(self) -> str:
        for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
            if self and self % size == 0:
                return f"{int(self) // size}{unit}"
        return str(int(self))


class Secret(str):
    """Text that is not shown where whatever holds it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'" if self else "''"


def read_unit(kind: type, value: object) -> object:
    """For msgspec: a duration or a size from what somebody wrote. Raises ValueError."""
    if kind is Seconds or kind is Bytes:
        return kind.read(value)
    raise TypeError(f"no such unit: {kind}")
