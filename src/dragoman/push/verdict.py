"""What an attempt's end means: delivered, to be tried again and when, or dead. Pure."""

from email.utils import parsedate_to_datetime
from typing import NamedTuple

from dragoman.client.exchange import Reply
from dragoman.push.settings import PushSettings

BUSY = 429
UNAVAILABLE = 503


class Verdict(NamedTuple):
    """`wait` is in milliseconds, for what is to be tried again. `why` goes on after the receiver's name."""

    delivered: bool = False
    dead: bool = False
    wait: int = 0
    why: str = ""


def of_reply(reply: Reply, attempts: int, settings: PushSettings, now: int) -> Verdict:
    """`attempts` were made before this one."""
    status = reply.status
    if 200 <= status < 300:
        return Verdict(delivered=True)
    why = f"answered with status {status}"
    if 400 <= status < 500 and not (status == BUSY and settings.retry_busy):
        return Verdict(dead=True, why=why)
    asked = _asked_for(reply.retry_after, now) if status in (BUSY, UNAVAILABLE) else None
    return of_failure(why, attempts, settings, asked)


def of_failure(why: str, attempts: int, settings: PushSettings, asked: int | None = None) -> Verdict:
    """An attempt that may succeed another time, if there is one left."""
    if attempts >= len(settings.retries):
        return Verdict(dead=True, why=why)
    wait = settings.retries[attempts] if asked is None else min(asked, settings.longest_wait)
    return Verdict(wait=wait, why=why)


def _asked_for(retry_after: str, now: int) -> int | None:
    """Milliseconds, of either form the header has; None for what is neither."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return int(text[:9]) * 1000
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() * 1000) - now)
    except (ValueError, OverflowError):
        return None
