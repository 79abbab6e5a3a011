"""Idempotency keys as they are written."""

from msgspec.structs import replace

from dragoman.ports import KeyRecord


def written(record: KeyRecord, uid: str, now: int) -> KeyRecord:
    """The record with the task it came with and the time it was written, unless it names its own."""
    return replace(record, uid=record.uid or uid, at=record.at or now)
