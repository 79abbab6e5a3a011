"""What somebody may register as a webhook: all but where its URL leads, for which `ports.Screen` asks the network.

What is registered ends up in the headers of our requests. So it has to be something a header can hold, and none that
says how the request is to be read.
"""

import re
from collections.abc import Iterator

from dragoman.model.errors import InvalidParams, Violation
from dragoman.model.operations import PushConfig

LONGEST = 4_096  # characters of a token or of credentials
MOST_TYPES = 64

# Headers that frame a request, or that say what we say ourselves. Whoever registers a webhook may name any other.
OURS = frozenset(
    {
        *("connection", "content-encoding", "content-length", "content-type", "expect", "host", "keep-alive", "te"),
        *("trailer", "transfer-encoding", "upgrade", "user-agent"),
        *("idempotency-key", "x-a2a-notification-token", "x-a2a-notification-signature"),
    }
)
_WORD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")  # what RFC 9110 calls a token
_SECRET = re.compile(r"[\x20-\x7e]*")
_PAIR = re.compile(r"[^\x00-\x1f\x7f]*:[^\x00-\x1f\x7f]*")  # user and password, which travel encoded


def judge(config: PushConfig) -> None:
    """Raises InvalidParams, with all that is wrong about it. Secrets are never repeated in what it says."""
    if found := tuple(_faults(config)):
        raise InvalidParams(found)


def _faults(config: PushConfig) -> Iterator[Violation]:
    if not config.url:
        yield Violation("url", "is required")
    yield from _secret("token", config.token)
    given = config.authentication or {}
    scheme, credentials = given.get("scheme", ""), given.get("credentials", "")
    if given and not _WORD.fullmatch(scheme):
        yield Violation("authentication.scheme", "must be the name of an HTTP authentication scheme")
    if not (scheme.lower() == "basic" and len(credentials) <= LONGEST and _PAIR.fullmatch(credentials)):
        yield from _secret("authentication.credentials", credentials)
    if config.header_name and not _WORD.fullmatch(config.header_name):
        yield Violation("headerName", "must be the name of a header")
    if config.header_name.lower() in OURS:
        yield Violation("headerName", "names a header that cannot carry credentials; choose another")
    if len(config.event_types) > MOST_TYPES or any(len(each) > 100 for each in config.event_types):
        yield Violation("eventTypes", f"must be at most {MOST_TYPES} words of at most 100 characters")


def _secret(field: str, value: str) -> Iterator[Violation]:
    if len(value) > LONGEST:
        yield Violation(field, f"must be at most {LONGEST} characters")
    elif not _SECRET.fullmatch(value):
        yield Violation(field, "must hold printable ASCII characters only: it is sent in a header")
