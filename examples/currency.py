"""A question, a remembered step, progress, a streamed answer and usage, in one skill."""

import re
from typing import NamedTuple

from dragoman import Agent, Turn

RATES = {"EUR": 1.0, "USD": 1.08, "GBP": 0.86, "JPY": 162.5}  # one euro buys so many


class Pair(NamedTuple):
    amount: float
    source: str
    target: str


def parse(text: str) -> Pair | None:
    """ "100 EUR in USD" as a pair of currencies, if both are known."""
    found = re.search(r"(\d+(?:\.\d+)?)\s*([A-Z]{3})\b.*?\b([A-Z]{3})\b", text.upper())
    if found is None or not {found[2], found[3]} <= RATES.keys():
        return None
    return Pair(float(found[1]), found[2], found[3])


async def fetch_rate(source: str, target: str) -> float:
    """Where a real desk would call its bank: slow, paid for, and never to be done twice."""
    return RATES[target] / RATES[source]


agent = Agent("Currency desk", description="Converts money.", version="1.2.0")


@agent.skill(tags=["money"], examples=["100 EUR in USD"])
async def convert(turn: Turn):
    """Converts an amount from one currency into another."""
    pair = parse(turn.text)
    while pair is None:
        reply = await turn.ask("How much, from which currency into which? For example: 100 EUR in USD")
        pair = parse(reply.text)
    await turn.say("Looking up the rate")
    rate = await turn.step("rate", fetch_rate, pair.source, pair.target)
    yield f"{pair.amount:.2f} {pair.source} is "
    yield f"{pair.amount * rate:.2f} {pair.target}"
    turn.usage(input_tokens=len(turn.text.split()), output_tokens=6)
