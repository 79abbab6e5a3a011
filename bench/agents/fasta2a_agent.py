"""The bench's agent for fasta2a: storage and broker in memory, one worker, as its documentation shows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.schema import Artifact, Message, TaskIdParams, TaskSendParams
from fasta2a.storage import InMemoryStorage
from hosting import arguments, serve
from workload import BLOB, NAP_SECONDS, TICK_SECONDS, count, tokens


class Bench(Worker[Any]):
    def __init__(self, behaviour: str, broker: InMemoryBroker, storage: InMemoryStorage[Any]) -> None:
        super().__init__(broker=broker, storage=storage)
        self._chunks = getattr(self, behaviour)

    async def run_task(self, params: TaskSendParams) -> None:
        task_id, context_id = params["id"], params["context_id"]
        await self.storage.update_task(task_id, state="working")
        await self.publish_status(task_id, context_id, "working")
        said: list[str] = []
        async for chunk in self._chunks(params["message"]["parts"][0]["text"]):
            artifact = Artifact(artifact_id="answer", parts=[{"text": chunk}])
            await self.publish_artifact(task_id, context_id, artifact, append=bool(said), last_chunk=False)
            said.append(chunk)
        whole = Artifact(artifact_id="answer", parts=[{"text": "".join(said)}])
        await self.storage.update_task(task_id, state="completed", new_artifacts=[whole])

    async def cancel_task(self, params: TaskIdParams) -> None:
        await self.storage.update_task(params["id"], state="canceled")

    def build_message_history(self, history: list[Message]) -> list[Any]:
        return []

    def build_artifacts(self, result: Any) -> list[Artifact]:
        return []

    async def echo(self, text: str) -> AsyncIterator[str]:
        yield text

    async def nap(self, text: str) -> AsyncIterator[str]:
        await asyncio.sleep(NAP_SECONDS)
        yield text

    async def stream(self, text: str) -> AsyncIterator[str]:
        for token in tokens(text):
            yield token
            await asyncio.sleep(0)

    async def tick(self, text: str) -> AsyncIterator[str]:
        for token in tokens(text):
            await asyncio.sleep(TICK_SECONDS)
            yield token

    async def idle(self, text: str) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield text

    async def blob(self, text: str) -> AsyncIterator[str]:
        for _ in range(count(text)):
            yield BLOB
            await asyncio.sleep(0)


if __name__ == "__main__":
    options = arguments()
    storage: InMemoryStorage[Any] = InMemoryStorage()
    broker = InMemoryBroker()
    worker = Bench(options.behaviour, broker, storage)

    @asynccontextmanager
    async def lifespan(app: FastA2A) -> AsyncIterator[None]:
        async with app.task_manager, worker.run():
            yield

    serve(FastA2A(storage=storage, broker=broker, name="Bench", lifespan=lifespan), options.port)
