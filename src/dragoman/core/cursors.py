"""Cursors and page tokens: opaque outside, two numbers inside."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from dragoman.model.errors import InvalidParams


def cursor(uid: str, seq: int) -> str:
    return f"{uid}.{seq}"


def position(text: str) -> tuple[str, int]:
    """The uid and number in a cursor. Raises InvalidParams when it is none of ours."""
    uid, dot, number = text.rpartition(".")
    if not (dot and uid and 0 < len(number) < 19 and number.isascii() and number.isdigit()):
        raise InvalidParams("not a cursor of this server; send the last id: you received", "Last-Event-ID")
    return uid, int(number)


def page_token(status_at: int, uid: str) -> str:
    return urlsafe_b64encode(f"{status_at}.{uid}".encode()).decode().rstrip("=")


def page_position(token: str) -> tuple[int, str]:
    """Where the next page starts. Raises InvalidParams when the token is none of ours."""
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        at, _, uid = raw.partition(".")
        if not uid or len(at) > 18 or page_token(int(at), uid) != token:  # a store's numbers end at 64 bits
            raise ValueError
        return int(at), uid
    except (ValueError, UnicodeError) as error:
        raise InvalidParams(
            "not a page token of this server; send nextPageToken as you received it", "pageToken"
        ) from error
