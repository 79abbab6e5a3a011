"""The bench's agent for a2a-sdk 1.x, written as its samples write theirs: task, working, artifacts, completed."""

import asyncio

from a2a.helpers.proto_helpers import get_message_text, new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from hosting import arguments, serve
from starlette.applications import Starlette
from workload import BLOB, NAP_SECONDS, TICK_SECONDS, count, tokens


class Bench(AgentExecutor):
    def __init__(self, behaviour: str) -> None:
        self._behaviour = getattr(self, behaviour)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await self._behaviour(get_message_text(context.message), updater)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()

    async def echo(self, text: str, updater: TaskUpdater) -> None:
        await updater.add_artifact([Part(text=text)], last_chunk=True)

    async def nap(self, text: str, updater: TaskUpdater) -> None:
        await asyncio.sleep(NAP_SECONDS)
        await updater.add_artifact([Part(text=text)], last_chunk=True)

    async def stream(self, text: str, updater: TaskUpdater) -> None:
        for number, token in enumerate(tokens(text)):
            await updater.add_artifact([Part(text=token)], artifact_id="answer", append=number > 0)
            await asyncio.sleep(0)

    async def tick(self, text: str, updater: TaskUpdater) -> None:
        for number, token in enumerate(tokens(text)):
            await asyncio.sleep(TICK_SECONDS)
            await updater.add_artifact([Part(text=token)], artifact_id="answer", append=number > 0)

    async def idle(self, text: str, updater: TaskUpdater) -> None:
        await asyncio.Event().wait()

    async def blob(self, text: str, updater: TaskUpdater) -> None:
        for number in range(count(text)):
            await updater.add_artifact([Part(text=BLOB)], artifact_id="blob", append=number > 0)
            await asyncio.sleep(0)


def card(port: int) -> AgentCard:
    url = f"http://127.0.0.1:{port}/"
    return AgentCard(
        name="Bench",
        description="Does what the bench asks.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=url),
            AgentInterface(protocol_binding="HTTP+JSON", protocol_version="1.0", url=url),
            AgentInterface(protocol_binding="JSONRPC", protocol_version="0.3", url=url),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="bench", name="bench", description="Does what the bench asks.", tags=["bench"])],
    )


def store(where: str) -> TaskStore:
    if where == "memory":
        return InMemoryTaskStore()
    from a2a.server.tasks import DatabaseTaskStore
    from sqlalchemy import event
    from sqlalchemy.ext.asyncio import create_async_engine

    path, _, journal = where.partition("?")
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    if journal == "wal":  # not how it comes; shown so that nobody has to wonder

        @event.listens_for(engine.sync_engine, "connect")
        def _pragmas(connection, _record) -> None:  # type: ignore[no-untyped-def]
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")

    return DatabaseTaskStore(engine)


if __name__ == "__main__":
    options = arguments()
    agent_card = card(options.port)
    handler = DefaultRequestHandler(Bench(options.behaviour), store(options.store), agent_card)
    routes = [
        *create_agent_card_routes(agent_card),
        *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
        *create_rest_routes(handler, enable_v0_3_compat=True),
    ]
    serve(Starlette(routes=routes), options.port)
