"""One document from an address a person named: bounded in size and time, and from there only."""

import time

from dragoman.model.errors import DragomanError

SECONDS = 10.0
LARGEST = 1024 * 1024


class Unfetched(DragomanError):
    """There is no document. The text goes on after the address: "could not be reached"."""


def fetch(url: str, *, seconds: float = SECONDS, largest: int = LARGEST) -> bytes:
    """The body of a 200. Follows no redirect: somebody else's address is nothing the person named.

    For commands, where a person stands behind the address. An address that a stranger sent needs the guard (`poster`).
    Raises Unfetched.
    """
    import httpx2  # takes a while, and most commands fetch nothing

    until = time.monotonic() + seconds
    body = b""
    try:
        with (
            httpx2.Client(timeout=seconds, follow_redirects=False) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as answer,
        ):
            if answer.status_code != 200:
                raise Unfetched(f"answered {answer.status_code}")
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > largest:
                    raise Unfetched(f"answered with more than {largest} bytes")
                if time.monotonic() > until:
                    raise Unfetched("did not answer in time")
    except (httpx2.HTTPError, httpx2.InvalidURL):
        raise Unfetched("could not be reached") from None
    return body
