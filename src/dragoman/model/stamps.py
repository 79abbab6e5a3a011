"""Timestamps: milliseconds inside, RFC 3339 in UTC with milliseconds outside."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHAPE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?", re.ASCII)


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=64)  # facts of one moment carry one stamp
def stamp(ms: int) -> str:
    """`1767225600700` as `2026-01-01T00:00:00.700Z`."""
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


def moment(text: str) -> int:
    """Milliseconds of an RFC 3339 time; raises ValueError for anything else, also for a time without a zone.

    Rounds up, so that «at or after» never lets an earlier millisecond in.
    """
    text = text.upper()
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise ValueError("not an RFC 3339 time")
    if shape[2] is None:
        raise ValueError("a time needs a zone, such as Z")
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("no such time") from error
    return -((_EPOCH - parsed) // timedelta(milliseconds=1))
