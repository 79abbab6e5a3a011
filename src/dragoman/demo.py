"""The demo agent: one skill for everything a client may meet. The first word of the text chooses, or metadata.skill.

It needs no network and no model, so that what you see is the protocol. A sentence is echoed whatever it begins with:
"Add a health check" is what a client may say to a real agent.
"""

import asyncio
from typing import Any

from dragoman.agents import Agent, Incoming, Reply, Turn
from dragoman.model.messages import Part

agent = Agent(
    "Dragoman demo",
    description="Shows what an agent can do over A2A. Say hello, or: stream 5, ask, auth, reject, fail, file, data, "
    "long, direct hi, add.",
)


@agent.router
def first_word(said: Incoming) -> str:
    """The skill named by the text's first word, if there are no more words than that skill reads; else the echo."""
    words = said.text.lower().split()
    named = words[0] if words else ""
    return named if named in SKILLS and len(words) <= READ.get(named, 1) else "echo"


@agent.skill(tags=["text"], examples=["hello"])
async def echo(turn: Turn) -> list[Part]:
    """Gives back what you send: text, files and data."""
    if turn.text.lower().startswith("echo "):
        return [Part(text=_rest(turn)), *(part for part in turn.parts if not isinstance(part.text, str))]
    return list(turn.parts)


@agent.skill(tags=["streaming"], examples=["stream 5"])
async def stream(turn: Turn):
    """Streams as many chunks as you say, five unless you do."""
    count = _number(turn, 5, most=10_000)
    await turn.say(f"Streaming {count} chunks")
    for i in range(1, count + 1):
        yield f"chunk {i} of {count}\n"
        await asyncio.sleep(0.05 if count <= 100 else 0)
    turn.usage(input_tokens=len(turn.text.split()), output_tokens=count * 4)


@agent.skill(tags=["questions"], examples=["ask"])
async def ask(turn: Turn) -> str:
    """Asks for a colour and waits for the answer, also across a restart."""
    answer = await turn.ask("Which colour do you like?")
    return f"You like {answer.text}."


@agent.skill(tags=["questions"], examples=["auth"])
async def auth(turn: Turn) -> str:
    """Waits until you say that you have signed in somewhere."""
    await turn.require_auth("Sign in at https://example.com/login, then send any message here.")
    return "Thank you, you are signed in."


@agent.skill(tags=["endings"], examples=["reject"])
async def reject(turn: Turn) -> None:
    """Refuses the task."""
    await turn.reject("This agent does not do that.")


@agent.skill(tags=["endings"], examples=["fail"])
async def fail(turn: Turn) -> None:
    """Fails the task with a reason."""
    await turn.say("Trying")
    await turn.fail("It did not work out.")


@agent.skill(tags=["content"], examples=["file"])
async def file(turn: Turn) -> Part:
    """Delivers a small CSV file."""
    return Part(raw=b"city,people\nRome,2800000\nOslo,710000\n", filename="cities.csv", media_type="text/csv")


@agent.skill(tags=["content"], examples=["data"])
async def data(turn: Turn) -> dict[str, Any]:
    """Delivers structured data."""
    return {"words": turn.text.split(), "files": len(turn.files), "received": turn.data}


@agent.skill(tags=["endings"], examples=["long", "long 60"], cancel_within=2)
async def long(turn: Turn):
    """Works for as many seconds as you say, ten minutes unless you do. Cancel it."""
    seconds = _number(turn, 600, most=86_400)
    for i in range(seconds):
        await turn.say(f"Second {i + 1} of {seconds}")
        await asyncio.sleep(1)
    yield "Done, and nobody cancelled."


@agent.skill(tags=["content"], examples=["direct hi"], direct=True)
async def direct(turn: Turn) -> Reply:
    """Answers with a Message at once, without a task."""
    return Reply(f"You said: {_rest(turn)}" if _rest(turn) else "Hello.")


@agent.skill(tags=["content"], examples=['a data part {"a": 2, "b": 3} with metadata.skill "add"'])
async def add(a: float, b: float = 0) -> dict[str, float]:
    """Adds two numbers of a data part; refuses what is no number, naming the field."""
    return {"sum": a + b}


SKILLS = {each.id for each in agent.profile.skills}
READ = {"stream": 2, "long": 2, "direct": 1_000, "data": 1_000}  # words of a message, where it is not its name alone


def _rest(turn: Turn) -> str:
    first, _, rest = turn.text.strip().partition(" ")
    return rest.strip() if first.lower() in SKILLS else turn.text.strip()


def _number(turn: Turn, otherwise: int, *, most: int) -> int:
    rest = _rest(turn)
    return min(int(rest), most) if rest.isdigit() and int(rest) > 0 else otherwise
