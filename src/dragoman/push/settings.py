"""What can be set about calling webhooks, with the defaults that hold when nobody says otherwise."""

from msgspec import Struct


class PushSettings(Struct, frozen=True, kw_only=True):
    """Plain values; `app` fills them from flags, environment and file."""

    seconds: float = 15.0
    """An attempt that takes longer has failed: resolving, connecting, sending and the answer's status together."""

    retries: tuple[int, ...] = (1_000, 3_000, 9_000)
    """Milliseconds to wait before each further attempt. After the last one a delivery is dead."""

    retry_busy: bool = False
    """Try again after 429 too. Any other 4xx says that the request is wrong, and it will not get better."""

    longest_wait: int = 600_000
    """Milliseconds a receiver may ask for with `Retry-After`; who asks for longer gets this."""

    total: int = 512
    """Attempts under way at once, to all receivers together."""

    per_receiver: int = 16
    """Attempts under way at once to one receiver that answers quickly. Others get less."""
