"""Typed skills: hints become schemas, data parts become arguments, and what does not fit is refused by its field."""

from enum import Enum
from typing import Annotated

import msgspec

from dragoman import Agent, Turn

Count = Annotated[int, msgspec.Meta(ge=1, le=100, description="how many")]


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Line(msgspec.Struct):
    item: str
    count: Count = 1


class Receipt(msgspec.Struct):
    items: int
    size: Size
    note: str | None


agent = Agent("Tea shop", description="Takes orders for tea.")


@agent.skill
async def order(turn: Turn, lines: list[Line], size: Size = Size.SMALL, note: str | None = None) -> Receipt:
    """Takes an order."""
    if not lines:
        await turn.reject("An order needs at least one line.")
    return Receipt(items=sum(line.count for line in lines), size=size, note=note)


@agent.skill
async def search(text: str, limit: int = 3) -> list[str]:
    """Finds teas by name. Plain text is enough: it fills `text`."""
    teas = ["assam", "darjeeling", "earl grey", "green", "jasmine"]
    return [tea for tea in teas if text.lower() in tea][:limit]
