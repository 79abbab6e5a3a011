"""An agent made of a registry of tools: the card lists them, one function decides which to use."""

from dragoman import Agent, Turn
from dragoman.agents import Tool

ORDERS = {"ada": ["tea"], "bob": ["tea", "cups"]}


def db_query(customer: str) -> list[str]:
    return ORDERS.get(customer.lower(), [])


def word_count(text: str) -> int:
    """Counts words."""
    return len(text.split())


async def assist(turn: Turn) -> str:
    """Takes every message. An agent with a model would ask it here which tools to call."""
    said = [message.parts[0].text for message in await turn.conversation()]
    if turn.text.lower() in ORDERS:
        return ", ".join(db_query(turn.text))
    return f"{word_count(turn.text)} words, after {len(said)} messages."


agent = Agent.from_tools(
    [Tool(name="db_query", description="Looks up orders.", capabilities=("db:read",), run=db_query), word_count],
    name="Toolbox",
    run=assist,
)
