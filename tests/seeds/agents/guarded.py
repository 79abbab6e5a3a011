"""An agent whose `refund` asks for a scope. The message's first word names the skill; it answers who is calling."""

from dragoman import Agent, Turn
from dragoman.agents import Incoming

agent = Agent("Guarded desk", description="Knows who is calling.", version="1.0.0")


@agent.router
def first_word(said: Incoming) -> str:
    return "refund" if said.text.startswith("refund") else "whoami"


@agent.skill
async def whoami(turn: Turn) -> str:
    return turn.principal.id


@agent.skill(scopes=["refunds"])
async def refund(turn: Turn) -> str:
    return f"refunded to {turn.principal.id}"
