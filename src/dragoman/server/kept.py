"""Pages that clients may keep: with validators, so that asking again costs little."""

import time
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from hashlib import sha256

from dragoman.wire.exchange import Headers, Reply

# What is kept changes only with the agents and keys, and those only with the process.
SINCE = int(time.time())


class Kept:
    """One rendered page, and how to answer who may have it already."""

    __slots__ = ("_body", "_etag", "_headers")

    def __init__(self, body: bytes, max_age: int, more: Headers = ()) -> None:
        self._body = body
        self._etag = f'"{sha256(body).hexdigest()[:32]}"'
        self._headers: Headers = (
            (b"etag", self._etag.encode()),
            (b"last-modified", formatdate(SINCE, usegmt=True).encode()),
            (b"cache-control", b"public, max-age=%d" % max_age),
            *more,
        )

    def reply(self, headers: Mapping[str, str]) -> Reply:
        if self._unchanged(headers):
            return Reply(304, self._headers, b"")
        return Reply(200, ((b"content-type", b"application/json"), *self._headers), self._body)

    def _unchanged(self, headers: Mapping[str, str]) -> bool:
        known = headers.get("if-none-match")
        if known is not None:
            tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
            return self._etag in tags or "*" in tags
        since = headers.get("if-modified-since")
        if since is None:
            return False
        try:
            return parsedate_to_datetime(since).timestamp() >= SINCE
        except (ValueError, OverflowError):
            return False
