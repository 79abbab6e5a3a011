"""Credentials as they stand in a request, before anybody judges them. What could be read in two ways is refused."""

import re
from binascii import a2b_base64
from urllib.parse import parse_qsl

from dragoman.auth.scheme import Refused
from dragoman.ports import Presented

LONGEST = 16_384  # characters of a credential; no honest one is near it
_VISIBLE = re.compile(r"[^\x00-\x1f\x7f]+")


def authorization(presented: Presented, scheme: str) -> str | None:
    """What follows `scheme` (in lower case) in the Authorization header, or None if that names another scheme."""
    value = presented.headers.get("authorization")
    if value is None:
        return None
    named, _, credentials = value.partition(" ")
    if named != scheme and named.lower() != scheme:
        return None
    credentials = credentials.strip(" ")
    if len(credentials) > LONGEST or not _VISIBLE.fullmatch(credentials):
        raise Refused("the Authorization header holds no credentials", error="invalid_request")
    return credentials


def bearer(presented: Presented) -> bytes | None:
    """The bearer token, as it was sent. Two of them in one request are none."""
    token = authorization(presented, "bearer")
    if token is not None and (" " in token or "," in token):
        raise Refused("the Authorization header holds more than one token", error="invalid_request")
    return None if token is None else token.encode("latin-1")


def basic(presented: Presented) -> tuple[str, str] | None:
    """User and password of HTTP Basic."""
    encoded = authorization(presented, "basic")
    if encoded is None:
        return None
    try:
        user, colon, password = a2b_base64(encoded, strict_mode=True).decode("utf-8").partition(":")
    except ValueError:
        raise Refused("the Basic credentials are not base64 of UTF-8", error="invalid_request") from None
    if not colon:
        raise Refused("the Basic credentials hold no colon", error="invalid_request")
    return user, password


def parameter(presented: Presented, place: str, name: str) -> bytes | None:
    """An API key from a header, the query or a cookie, as it was sent. `name` of a header is in lower case."""
    if place == "header":
        values = [presented.headers[name]] if name in presented.headers else []
    elif place == "query":
        values = [value for key, value in parse_qsl(presented.query, keep_blank_values=True) if key == name]
    else:
        pairs = (each.strip().partition("=") for each in presented.headers.get("cookie", "").split(";"))
        values = [value for key, _, value in pairs if key == name]
    if not values:
        return None
    if len(values) > 1:
        raise Refused(f"the key {name} is given more than once", error="invalid_request")
    if not values[0] or len(values[0]) > LONGEST:
        raise Refused(f"the key {name} is empty or too long", error="invalid_request")
    return values[0].encode("utf-8" if place == "query" else "latin-1")
