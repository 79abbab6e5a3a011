"""Dragoman serves agents over the Agent2Agent protocol: any client, any dialect of A2A, nothing lost.

Importing this package is cheap: every name below is loaded when it is first touched.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.agents import Agent, Reply, Turn
    from dragoman.app import asgi, serve
    from dragoman.app.signing import sign_card
    from dragoman.client.verifying import VerifiedCard, verify_card
    from dragoman.model import errors
    from dragoman.model.messages import Artifact, Message, Part, Role
    from dragoman.model.tasks import Task, TaskState, TaskStatus
    from dragoman.webhooks import News, Receiver

__version__ = "0.1.0"

_HOMES = {
    "Agent": "dragoman.agents",
    "Artifact": "dragoman.model.messages",
    "Message": "dragoman.model.messages",
    "News": "dragoman.webhooks",
    "Part": "dragoman.model.messages",
    "Receiver": "dragoman.webhooks",
    "Reply": "dragoman.agents",
    "Role": "dragoman.model.messages",
    "Task": "dragoman.model.tasks",
    "TaskState": "dragoman.model.tasks",
    "TaskStatus": "dragoman.model.tasks",
    "Turn": "dragoman.agents",
    "VerifiedCard": "dragoman.client.verifying",
    "asgi": "dragoman.app",
    "errors": "dragoman.model",
    "serve": "dragoman.app",
    "sign_card": "dragoman.app.signing",
    "verify_card": "dragoman.client.verifying",
}

__all__ = [
    "Agent",
    "Artifact",
    "Message",
    "News",
    "Part",
    "Receiver",
    "Reply",
    "Role",
    "Task",
    "TaskState",
    "TaskStatus",
    "Turn",
    "VerifiedCard",
    "asgi",
    "errors",
    "serve",
    "sign_card",
    "verify_card",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = _HOMES[name]
        value = import_module(f"{home}.{name}") if name == "errors" else getattr(import_module(home), name)
        globals()[name] = value  # so that this runs once per name
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
