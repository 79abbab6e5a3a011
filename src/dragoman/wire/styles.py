"""How the streams of a seed mount look, beside what is in them.

`literal` frames are those of the system's own page. `plain` ones are official. `superset` frames are official responses
with the literal members behind the result, so that either kind of client finds what it looks for:
`{"jsonrpc":"2.0","id":1,"result":{…},"kind":"status-update",…}`.
"""

from collections.abc import Callable

from dragoman.model.facts import AnyFact
from dragoman.model.operations import TaskRef
from dragoman.wire.dialect import Encode

Events = Callable[[TaskRef], Encode]


def beside(result: bytes, literal: bytes) -> bytes:
    """The official payload, and behind it the members of the literal one."""
    return b"%b,%b" % (result, literal[1:-1]) if literal else result


def both(official: Events, literal: Events) -> Events:
    """Superset frames, of facts that are one frame in either look."""

    def events(ref: TaskRef) -> Encode:
        write, show = official(ref), literal(ref)

        def encode(fact: AnyFact, final: bool) -> bytes:
            result, shown = write(fact, final), show(fact, final)
            assert isinstance(result, bytes) and isinstance(shown, bytes), "one frame each"
            return beside(result, shown) if result else b""

        return encode

    return events
