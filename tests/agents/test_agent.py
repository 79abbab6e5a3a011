"""An agent's card, how it chooses skills, and its direct answers."""

import functools
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.agents import Agent, Incoming, Reply, Turn
from dragoman.model.cards import Extension, Overlay, Profile, Provider, Skill
from dragoman.model.errors import AgentError, InvalidParams
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import Principal
from dragoman.ports import Agent as Port
from dragoman.ports import Route
from tests.agents.handle import Handle, run, said

pytestmark = pytest.mark.anyio


async def nothing(turn: Turn) -> None: ...


async def reply(agent: Agent, message: Message | str = "hi") -> Message:
    message = said(message) if isinstance(message, str) else message
    return await agent.reply(agent.route(message, None), Handle(message))


@pytest.mark.proves("S-12-1")
async def test_a_card_is_made_of_names_docstrings_and_words() -> None:
    provider = Provider(organization="O", url="https://o.test")
    agent = Agent(
        "Desk",
        description="d",
        version="1.2.0",
        provider=provider,
        icon_url="i",
        documentation_url="u",
        extensions=["urn:a", Extension(uri="urn:b", required=True)],
        streaming=False,
        output_modes=["text/plain"],
    )
    port: Port = agent

    @agent.skill
    async def convert_money(turn: Turn) -> None:
        """Converts money.

        At today's rate.
        """

    agent.skill(id="x", name="X!", description="y", tags=["t"], examples=["e"], input_modes=["a/b"])(nothing)
    profile = port.profile
    assert profile.skills[0] == Skill(
        id="convert_money",
        name="Convert Money",
        description="Converts money.\n\nAt today's rate.",
        tags=("convert", "money"),
    )
    assert profile.skills[1] == Skill(
        id="x", name="X!", description="y", tags=("t",), examples=("e",), input_modes=("a/b",)
    )
    assert (profile.name, profile.description, profile.version, profile.provider) == ("Desk", "d", "1.2.0", provider)
    assert (profile.icon_url, profile.documentation_url, profile.streaming) == ("i", "u", False)
    assert profile.extensions == (Extension(uri="urn:a"), Extension(uri="urn:b", required=True))
    assert profile.output_modes == ("text/plain",)
    assert profile.accepts == ()
    assert not profile.extended
    await port.close()


def test_a_description_is_never_empty() -> None:
    agent = Agent("Desk")
    agent.skill(nothing)
    assert agent.profile.description == "Desk"
    assert agent.profile.skills[0].description == "Nothing"


@pytest.mark.proves("S-12-6")
def test_input_modes_are_enforced_once_the_author_names_them() -> None:
    agent = Agent("Desk", input_modes=["text/plain"])
    agent.skill(input_modes=["image/png", "text/plain"])(nothing)
    assert agent.profile.input_modes == ("text/plain",)
    assert agent.profile.accepts == ("text/plain", "image/png")


def test_extended_skills_show_only_on_the_extended_card() -> None:
    agent = Agent("Desk", extended=True)
    assert agent.profile.extended_skills == ()
    agent.skill(extended=True)(nothing)
    assert agent.profile.skills == ()
    assert [each.id for each in agent.profile.extended_skills or ()] == ["nothing"]
    other = Agent("Desk")
    other.skill(extended=True)(nothing)
    assert other.profile.extended


async def test_an_author_says_who_sees_what_on_the_extended_card() -> None:
    async def for_caller(principal: Principal) -> Overlay | None:
        return Overlay(description="For you") if "gold" in principal.scopes else None

    agent = Agent("Desk", description="For all", extended=for_caller)
    agent.skill(nothing)
    agent.skill(id="hidden", extended=True)(nothing)
    agent.skill(id="gold", extended=lambda principal: "gold" in principal.scopes)(nothing)
    profile = agent.profile
    assert (shown(profile.skills), shown(profile.extended_skills)) == (["nothing"], ["hidden"])
    assert profile.overlay is not None
    gold = profile.with_overlay(await overlaid(profile, Principal(id="a", scopes=frozenset({"gold"}))))
    assert (gold.description, shown(gold.extended_skills)) == ("For you", ["hidden", "gold"])
    other = profile.with_overlay(await overlaid(profile, Principal(id="b")))
    assert (other.description, shown(other.extended_skills)) == ("For all", ["hidden"])


async def test_what_an_author_says_about_a_caller_goes_before_what_a_skill_says() -> None:
    agent = Agent("Desk", extended=lambda principal: Overlay(without=(principal.id,)))
    agent.skill(id="gold", extended=lambda principal: True)(nothing)
    assert agent.profile.extended
    assert (await overlaid(agent.profile, Principal(id="gold"))).skills == ()
    assert shown((await overlaid(agent.profile, Principal(id="b"))).skills) == ["gold"]


def shown(skills: Sequence[Skill] | None) -> list[str]:
    return [skill.id for skill in skills or ()]


async def overlaid(profile: Profile, principal: Principal) -> Overlay:
    assert profile.overlay is not None
    found: Any = profile.overlay(principal)
    return await found


def test_two_skills_cannot_share_an_id() -> None:
    agent = Agent("Desk")
    agent.skill(nothing)
    with pytest.raises(ValueError, match="already is a skill 'nothing'"):
        agent.skill(nothing)
    with pytest.raises(ValueError, match="a direct skill never parks"):
        agent.skill(id="other", direct=True, parking="hold")(nothing)


def test_a_route_carries_how_the_turn_is_to_be_run() -> None:
    agent = Agent("Desk", serialize="context")
    agent.skill(on_restart="rerun", parking="hold", timeout=1.5, cancel_within=2)(nothing)
    assert agent.route(said("hi"), None) == Route(
        skill="nothing",
        on_restart="rerun",
        parking="hold",
        serialize="context",
        cancel_ms=2_000,
        timeout_ms=1_500,
    )


@pytest.mark.proves("D-6-4", "S-12-3")
def test_the_only_skill_takes_everything_whatever_the_message_names() -> None:
    agent = Agent("Desk")
    agent.skill(nothing)
    assert agent.route(said("hi", metadata={"skill": "unknown"}), None).skill == "nothing"


@pytest.mark.proves("D-6-4")
def test_metadata_of_message_or_request_names_the_skill() -> None:
    agent = Agent("Desk")
    agent.skill(id="a")(nothing)
    agent.skill(id="b")(nothing)
    assert agent.route(said("hi", metadata={"skill": "b"}), None).skill == "b"
    assert agent.route(said("hi"), {"skill": "a"}).skill == "a"
    assert agent.route(said("hi", metadata={"skill": "b"}), {"skill": "a"}).skill == "b"
    with pytest.raises(InvalidParams, match=r"There is no such skill\. Name one of: a, b") as unknown:
        agent.route(said("hi", metadata={"skill": "c"}), None)
    assert unknown.value.violations[0].field == "message.metadata.skill"
    with pytest.raises(InvalidParams, match=r"Several skills could take this\. Name one of: a, b"):
        agent.route(said("hi"), None)
    with pytest.raises(InvalidParams, match="no skills yet"):
        Agent("Empty").route(said("hi"), None)


@pytest.mark.proves("D-6-4", "S-12-3")
def test_the_authors_router_decides_where_the_message_names_no_known_skill() -> None:
    agent = Agent("Desk")
    agent.skill(id="a")(nothing)
    agent.skill(id="b")(nothing)

    @agent.router
    def choose(incoming: Incoming) -> str | None:
        return incoming.text or None

    assert agent.route(said("a", metadata={"skill": "b"}), None).skill == "b"
    assert agent.route(said("a", metadata={"skill": "unknown"}), None).skill == "a"
    with pytest.raises(InvalidParams, match=r"No skill takes this message\. Name one of: a, b"):
        agent.route(said(""), None)
    with pytest.raises(AgentError, match="does not have"):
        agent.route(said("c"), None)


async def test_a_skill_that_is_gone_after_a_restart_is_an_error() -> None:
    with pytest.raises(AgentError, match="'old' is gone"):
        await Agent("Desk").run(Route(skill="old"), Handle(said("hi")))


async def test_functions_are_recognised_through_partials_wrappers_and_callable_objects() -> None:
    agent = Agent("Desk")

    class Callable:
        async def __call__(self, turn: Turn) -> str:
            return f"object {type(turn).__name__}"

    async def two(word: str, turn: Turn) -> str:
        return f"{word} {type(turn).__name__}"

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call

    @agent.skill
    @logged
    async def wrapped(turn: Turn) -> str:
        return f"wrapped {type(turn).__name__}"

    agent.skill(id="object")(Callable())
    agent.skill(id="partial")(functools.partial(two, "partial"))
    for id in ("object", "partial", "wrapped"):
        assert (await run(agent, said("x", metadata={"skill": id}))).chunks[0][0] == f"{id} Turn"


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ("text", (Part(text="text"),)),
        (None, (Part(text=""),)),
        ({"a": 1}, (Part(data={"a": 1}),)),
        (Artifact(parts=(Part(text="a"),)), (Part(text="a"),)),
        (Reply("a", {"b": 1}), (Part(text="a"), Part(data={"b": 1}))),
    ],
)
async def test_a_direct_skill_answers_with_one_message(result: Any, parts: tuple[Part, ...]) -> None:
    agent = Agent("Desk")

    @agent.skill(direct=True)
    async def answer(turn: Turn) -> Any:
        return result

    assert agent.route(said("hi"), None).direct
    message = await reply(agent)
    assert (message.role, message.context_id, message.parts) == (Role.AGENT, "context", parts)
    assert message.message_id


async def test_a_direct_skill_that_yields_says_it_all_in_one_message() -> None:
    agent = Agent("Desk")

    @agent.skill(direct=True)
    async def answer(turn: Turn):
        yield "a"
        yield "b"
        yield {"c": 1}
        yield "d"

    assert (await reply(agent)).parts == (Part(text="ab"), Part(data={"c": 1}), Part(text="d"))


async def test_a_direct_message_keeps_its_own_id_and_metadata() -> None:
    agent = Agent("Desk")

    @agent.skill(direct=True)
    def answer() -> Message:
        return Message(message_id="mine", context_id="other", parts=(Part(text="a"),), metadata={"m": 1})

    message = await reply(agent)
    assert (message.message_id, message.context_id, message.metadata) == ("mine", "other", {"m": 1})


async def test_a_direct_skill_refuses_with_an_error_since_it_has_no_task() -> None:
    agent = Agent("Desk")

    @agent.skill(direct=True)
    async def answer(turn: Turn) -> None:
        await (turn.reject("not this") if turn.text == "reject" else turn.fail())

    with pytest.raises(InvalidParams, match="not this"):
        await reply(agent, "reject")
    with pytest.raises(AgentError, match="The agent failed"):
        await reply(agent, "fail")


def test_what_an_author_misspells_is_told_where_it_stands() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        Agent(" ")
    with pytest.raises(ValueError, match="serialize='tasks' is none of '', 'context'"):
        Agent("Desk", serialize="tasks")  # pyright: ignore[reportArgumentType]
    agent = Agent("Desk")
    with pytest.raises(ValueError, match="on_restart='maybe' is none of 'fail', 'rerun'"):
        agent.skill(on_restart="maybe")  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(ValueError, match="parking='wait' is none of 'replay', 'hold'"):
        agent.skill(parking="wait")  # pyright: ignore[reportCallIssue, reportArgumentType]
    for seconds in ({"timeout": -1.0}, {"cancel_within": -1.0}):
        with pytest.raises(ValueError, match="never negative"):
            agent.skill(**seconds)  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert not agent.skilled
