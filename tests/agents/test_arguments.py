"""Hints become schemas, data becomes arguments, and what does not fit is refused by the name of its field."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from dragoman.agents import Agent, Reply, SyncTurn, Turn
from dragoman.model.errors import InvalidParams
from dragoman.model.messages import Artifact, Part
from dragoman.model.tasks import TaskState
from tests.agents.handle import Handle, run, said, words

pytestmark = pytest.mark.anyio


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Line(msgspec.Struct):
    item: str
    count: int = 1


@dataclass
class Point:
    x: int
    y: int = 0


class Size(TypedDict):
    w: int


class Street(pydantic.BaseModel):
    name: str


class Address(pydantic.BaseModel):
    city: str
    streets: list[Street] = []


def skill(function: Any, **how: Any) -> Agent:
    agent = Agent("a")
    agent.skill(**how)(function)
    return agent


async def outcome(function: Any, *content: Any) -> Any:
    """What the skill made of the message: its data, or why it was rejected."""
    parts = [each if isinstance(each, Part | str) else Part(data=each) for each in content]
    turn = await run(skill(function), said(*parts))
    if turn.end[0] is TaskState.REJECTED:
        return words(turn.end[1])
    return turn.artifacts[0].parts[0].data


@pytest.mark.proves("D-6-3")
async def test_a_data_part_fills_the_arguments_with_their_types() -> None:
    async def order(
        turn: Turn,
        lines: list[Line],
        colour: Colour,
        at: Point | None = None,
        note: str = "none",
        tags: list[str] = ["a"],  # noqa: B006 (that it is copied is what is tested)
    ) -> list[Any]:
        tags.append("b")
        return [turn.text, lines[0].item, colour.name, at.x if at else None, note, tags]

    data = {"lines": [{"item": "tea"}], "colour": "red", "at": {"x": 1}}
    assert await outcome(order, "hi", data) == ["hi", "tea", "RED", 1, "hi", ["a", "b"]]
    assert await outcome(order, data | {"note": "n"}) == ["", "tea", "RED", 1, "n", ["a", "b"]]


async def order(lines: list[Line], point: Point, where: Address | None = None, colour: Colour = Colour.RED) -> None: ...


@pytest.mark.proves("D-6-3")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "lines: is required"),
        ({"lines": []}, "point: is required"),
        ({"lines": 1}, "lines: Expected array, got int"),
        ({"lines": [{}]}, "lines[0].item: is required"),
        ({"lines": [{"item": "a", "count": 1.5}]}, "lines[0].count: Expected int, got float"),
        ({"lines": [], "point": {"x": "1"}}, "point.x: Expected int, got str"),
        ({"lines": [], "point": {"x": 1}, "colour": "green"}, "colour: Invalid enum value 'green'"),
        ({"lines": [], "point": {"x": 1}, "color": "red"}, "color: is not a known field"),
        ({"lines": [], "point": {"x": 1}, "where": {}}, "where.city: Field required"),
        (
            {"lines": [], "point": {"x": 1}, "where": {"city": 1, "streets": [{}]}},
            "where.city: Input should be a valid string; where.streets[0].name: Field required",
        ),
    ],
)
async def test_what_does_not_fit_rejects_the_task_naming_the_field(data: Any, problem: str) -> None:
    turn = await run(skill(order), said(Part(data=data)))
    assert (turn.end[0], words(turn.end[1])) == (TaskState.REJECTED, problem)
    field, _, description = problem.partition("; ")[0].partition(": ")
    assert turn.end[2] is not None
    assert turn.end[2]["violations"][0] == {"field": field, "description": description}


async def test_a_direct_skill_refuses_the_call_instead() -> None:
    agent = skill(order, direct=True)
    message = said(Part(data={"lines": 1}))
    with pytest.raises(InvalidParams) as refusal:
        await agent.reply(agent.route(message, None), Handle(message))
    assert refusal.value.violations[0] == ("lines", "Expected array, got int")


async def test_whole_floats_are_taken_for_integers_as_some_peers_send_them() -> None:
    async def add(a: int, b: list[int]) -> Any:
        return [a, b]

    assert await outcome(add, {"a": 1.0, "b": [2.0]}) == [1, [2]]
    assert await outcome(add, {"a": 1.0, "b": ["x"]}) == "a: Expected int, got float"


async def test_text_fills_the_one_argument_that_can_take_it() -> None:
    async def only(text: str) -> Any:
        return {"text": text}

    async def untyped(anything) -> Any:  # pyright: ignore[reportMissingParameterType,reportUnknownParameterType]
        return {"anything": anything}

    async def optional(text: str | None = None) -> Any:
        return {"text": text}

    async def among(n: int = 1, text: str = "t") -> Any:
        return [n, text]

    async def required(text: str, to: str = "EUR") -> Any:
        return [text, to]

    async def count(n: int) -> Any:
        return {"n": n}

    async def choice(size: Literal["s", "m"]) -> Any:
        return {"size": size}

    async def coloured(colour: Colour) -> Any:
        return {"colour": colour.name}

    assert await outcome(only, '{"raw": 1}') == {"text": '{"raw": 1}'}
    assert await outcome(untyped, "hi") == {"anything": "hi"}
    assert await outcome(optional) == {"text": None}
    assert await outcome(among, "hi") == [1, "hi"]
    assert await outcome(required, "hi") == ["hi", "EUR"]
    assert await outcome(required, "hi", {"to": "USD"}) == ["hi", "USD"]
    assert await outcome(count, " 5 ") == {"n": 5}
    assert await outcome(count, "five") == "n: Expected int, got str"
    assert await outcome(choice, "m") == {"size": "m"}
    assert await outcome(choice, "xl") == "size: Invalid enum value 'xl'"
    assert await outcome(coloured, "blue") == {"colour": "BLUE"}


async def test_text_that_is_json_serves_as_data_where_no_argument_takes_text() -> None:
    async def add(a: int, b: int = 2) -> Any:
        return [a, b]

    async def ambiguous(a: str, b: str) -> Any:
        return [a, b]

    assert await outcome(add, ' {"a": 1}') == [1, 2]
    assert await outcome(add, "{oops") == "The text is not valid JSON; send the arguments as a data part"
    assert await outcome(add, "plain") == "a: is required"
    assert await outcome(ambiguous, "plain") == "a: is required"


@pytest.mark.parametrize(
    ("hint", "data", "shown"),
    [
        (Line, {"item": "tea"}, {"item": "tea", "count": 1}),
        (Annotated[Point, "where"], {"x": 1, "y": 2}, {"x": 1, "y": 2}),
        (Size, {"w": 1}, {"w": 1}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Address, {"city": "Rome"}, {"city": "Rome", "streets": []}),
        (Line | None, {"item": "tea"}, {"item": "tea", "count": 1}),
    ],
)
async def test_a_single_model_argument_is_the_data_part_itself(hint: Any, data: Any, shown: Any) -> None:
    async def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = hint
    assert await outcome(take, data) == shown
    assert await outcome(take, "text") == "value: is required"
    assert "properties" in str(skill(take).schemas("take")[0]) or hint == dict[str, int]


async def test_a_single_list_argument_takes_a_list_bare_or_by_name() -> None:
    async def total(numbers: list[int]) -> Any:
        return {"total": sum(numbers)}

    assert await outcome(total, [1, 2]) == {"total": 3}
    assert await outcome(total, {"numbers": [1, 2]}) == {"total": 3}


async def test_the_turn_is_found_by_name_or_hint_and_passed_as_the_function_takes_it() -> None:
    async def named(turn, n: int) -> Any:  # pyright: ignore[reportMissingParameterType,reportUnknownParameterType]
        return [type(turn).__name__, n]

    async def hinted(n: int, me: Turn) -> Any:
        return [type(me).__name__, n]

    async def positional(me: "Turn", n: int, /) -> Any:
        return [type(me).__name__, n]

    def blocking(n: int, me: "SyncTurn") -> Any:
        return [type(me).__name__, n]

    for function in (named, hinted, positional):
        assert await outcome(function, {"n": 1}) == ["Turn", 1]
    assert await outcome(blocking, {"n": 1}) == ["SyncTurn", 1]


async def test_hints_written_as_text_are_resolved_where_the_function_was_made() -> None:
    class Local(msgspec.Struct):
        n: int

    async def take(value: "Local", also: "Point | None" = None) -> Any:
        return {"n": value.n, "local": Local.__name__}

    assert await outcome(take, {"value": {"n": 1}}) == {"n": 1, "local": "Local"}


def test_signatures_no_message_can_fill_are_refused_at_once_in_words_for_the_author() -> None:
    async def many(*args: int) -> None: ...
    async def unknown(value: "Nowhere") -> None: ...  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
    async def unsendable(value: Turn, other: "type[object]") -> None: ...

    with pytest.raises(TypeError, match=r"many: \*args cannot be filled from a message"):
        skill(many)
    with pytest.raises(TypeError, match="unknown: the hint 'Nowhere' cannot be resolved"):
        skill(unknown)
    with pytest.raises(TypeError, match=r"unsendable: .* has no JSON form"):
        skill(unsendable)


@pytest.mark.proves("D-6-3")
def test_input_schemas_say_what_is_required_and_what_is_allowed() -> None:
    schema, output = skill(order).schemas("order")
    assert output is None
    assert schema is not None
    assert schema["required"] == ["lines", "point"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["colour"] == {"$ref": "#/$defs/Colour", "default": "red"}
    assert set(schema["$defs"]) == {"Line", "Point", "Street", "Colour"}
    assert schema["$defs"]["Colour"]["enum"] == ["blue", "red"]


@pytest.mark.proves("D-6-3")
def test_output_schemas_come_from_the_return_hint() -> None:
    from collections.abc import AsyncIterator

    async def one(text: str) -> Line | None: ...
    async def many(text: str) -> AsyncIterator[Point]:
        yield Point(1)

    async def spoken(text: str) -> Artifact | Reply: ...
    async def odd(text: str) -> "Nowhere": ...  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
    async def strange(text: str) -> type[object]: ...
    async def silent(turn: Turn) -> None: ...

    def output(function: Any) -> Any:
        return skill(function).schemas(function.__name__)[1]

    assert "anyOf" in output(one)
    assert output(many)["properties"]["x"] == {"type": "integer"}
    assert [output(each) for each in (spoken, odd, strange, silent)] == [None] * 4
    assert skill(silent).schemas("silent")[0] is None
