"""Test an agent without sockets: the whole server, in this process, driven through its ASGI door.

async with dragoman.testing.Client(agent) as client:
    task = await client.send("hi")
    assert client.text(task) == "hi"
"""

from dragoman.testing.client import Client, text
from dragoman.testing.events import ArtifactUpdate, Event, RpcError, StatusUpdate, TaskList
from dragoman.testing.inprocess import Response

__all__ = ["ArtifactUpdate", "Client", "Event", "Response", "RpcError", "StatusUpdate", "TaskList", "text"]
