"""The bench's agent for a2akit (protocol 0.3), everything in memory, as its quick start shows."""

import asyncio

from a2akit import A2AServer, AgentCardConfig, CapabilitiesConfig, TaskContext, Worker
from hosting import arguments, serve
from workload import BLOB, NAP_SECONDS, TICK_SECONDS, count, tokens


class Bench(Worker):
    def __init__(self, behaviour: str) -> None:
        self._behaviour = getattr(self, behaviour)

    async def handle(self, ctx: TaskContext) -> None:
        await self._behaviour(ctx)

    async def echo(self, ctx: TaskContext) -> None:
        await ctx.complete(ctx.user_text)

    async def nap(self, ctx: TaskContext) -> None:
        await asyncio.sleep(NAP_SECONDS)
        await ctx.complete(ctx.user_text)

    async def stream(self, ctx: TaskContext) -> None:
        for number, token in enumerate(tokens(ctx.user_text)):
            await ctx.emit_text_artifact(token, append=number > 0)
            await asyncio.sleep(0)
        await ctx.complete()

    async def tick(self, ctx: TaskContext) -> None:
        for number, token in enumerate(tokens(ctx.user_text)):
            await asyncio.sleep(TICK_SECONDS)
            await ctx.emit_text_artifact(token, append=number > 0)
        await ctx.complete()

    async def idle(self, ctx: TaskContext) -> None:
        await asyncio.Event().wait()

    async def blob(self, ctx: TaskContext) -> None:
        for number in range(count(ctx.user_text)):
            await ctx.emit_text_artifact(BLOB, append=number > 0)
            await asyncio.sleep(0)
        await ctx.complete()


if __name__ == "__main__":
    options = arguments()
    server = A2AServer(
        worker=Bench(options.behaviour),
        agent_card=AgentCardConfig(
            name="Bench",
            description="Does what the bench asks.",
            version="1.0.0",
            capabilities=CapabilitiesConfig(streaming=True),
        ),
    )
    serve(server.as_fastapi_app(), options.port)
