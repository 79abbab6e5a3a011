"""One promise, and why it has no test where it has none."""

from typing import Literal, NamedTuple

# What is not built yet. A promise may wait for one of these, and for nothing else.
Pending = Literal[
    "",
    "authentication",
    "gRPC",
    "client",
    "coding CLIs",
    "x402",
    "swarm",
    "tool wrapper",
    "command line",
    "agent framework",
]


class Requirement(NamedTuple):
    """`text` says in our words what must be seen. `pending` names what it waits for; `elsewhere` says why it is not
    for us to keep: a duty of callers, of deployments, of whoever defines a binding."""

    id: str
    text: str
    pending: Pending = ""
    elsewhere: str = ""
