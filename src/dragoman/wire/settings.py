"""What reading a request is allowed to meet."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Style = Literal["superset", "literal", "plain"]
SEED_MOUNTS = ("/a2a/jsonrpc", "/a2a", "/api/a2a")
"""Where JSON-RPC is spoken beside `/`, in the order of the cards. `mounts.SEEDS` says by whom."""


class WireSettings(Struct, frozen=True, kw_only=True):
    """Limits and choices of the wire.

    `require_version` refuses 1.0 method names without `A2A-Version` (the letter of the specification: absent means
    0.3). By default they are read as 1.0, which cannot be misread: no 0.x version has those names.

    `mounts` are the paths where JSON-RPC is spoken beside `/`, `primary` the path and version the card names first: who
    says nothing else there is taken to speak that. `frames` says how the streams of each look: as its own
    clients and official ones both read them, to the letter of its page, or official. `cortex_statuses` answers errors
    of Cortex's method names with the HTTP statuses its server uses. `patience` is how many seconds a stream that goes
    on over a question waits for the answer.

    Who has to log in and did not is answered with status 401, except as two systems do it, if these say so: `a2x_tasks`
    answers a message to A2X's mount with a task that asks for authentication, `simple_errors` simple_a2a's own method
    names with its error number and status 200.
    """

    require_version: bool = False
    mounts: tuple[str, ...] = SEED_MOUNTS
    primary: tuple[str, str] = ("/", "1.0")
    frames: Mapping[str, Style] = {}
    cortex_statuses: bool = False
    a2x_tasks: bool = False
    simple_errors: bool = False
    patience: float = 600
    max_news: int = (
        1_048_576  # bytes of a webhook's body: common receivers take no more, and each is kept till delivered
    )
    max_depth: int = 64  # official clients give up at 100 (protobuf's own limit); our answers nest a few levels deeper
    max_containers: int = 200_000  # arrays and objects in one body: each costs a decoder some hundred bytes
    max_parts: int = 1000  # of a message; no other list in a request is longer either
