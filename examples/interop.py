"""The agent the interop tests talk to: every kind of answer a client can meet, chosen by the first word it sends.

dragoman serve examples/interop.py
"""

import asyncio

from dragoman import Agent, Part, Turn
from dragoman.agents import Incoming

agent = Agent("Interop", description="Answers in every way an agent can.", version="1.0.0")

EVERY_KIND = (
    Part(text="plain"),
    Part(raw=b"\x00bytes\xff", media_type="application/octet-stream", filename="blob.bin"),
    Part(url="https://example.com/cat.png", media_type="image/png", filename="cat.png"),
    Part(data={"key": "value", "count": 42, "deep": [1, None, {"x": True}]}),
)


@agent.router
def choose(incoming: Incoming) -> str:
    return "message" if incoming.text.startswith("message") else "work"


@agent.skill(direct=True)
async def message(turn: Turn) -> str:
    """Answer with a message and no task."""
    return turn.text


@agent.skill(tags=["test"], examples=["echo hello", "count 20", "ask", "hold", "parts", "mirror", "reject", "fail"])
async def work(turn: Turn):
    """Do what the first word says."""
    word, _, rest = str(turn.parts[0].text).partition(" ")
    match word:
        case "count":
            for number in range(int(rest)):
                yield f"<{number}>"
                await asyncio.sleep(0.03)
        case "ask":
            reply = await turn.ask("Which city?")
            yield f"Sunny in {reply.text}"
        case "hold":
            await turn.say("Holding")
            await asyncio.Event().wait()
        case "parts":
            await turn.artifact("parts", *EVERY_KIND)
        case "mirror":
            await turn.artifact("mirror", *turn.parts[1:])
        case "reject":
            await turn.reject("Not today")
        case "fail":
            await turn.fail("It broke")
        case _:
            yield f"echo: {rest}"
