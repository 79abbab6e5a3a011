"""Cards: found where each version looks for them, true in every address they name, and with nothing else on them."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Turn
from dragoman.auth.hashes import token_hash
from dragoman.model.cards import Overlay
from dragoman.model.operations import Principal
from tests.protocol.speaking import SPEAKERS, Speaker, serving
from tests.protocol.stage import Stage

pytestmark = pytest.mark.anyio

PATH = "/.well-known/agent-card.json"
MEMBERS = {
    *("name", "description", "version", "supportedInterfaces", "capabilities", "skills", "provider", "iconUrl"),
    *("defaultInputModes", "defaultOutputModes", "documentationUrl"),
}


async def card(speaker: Speaker, version: str = "1.0", path: str = PATH) -> dict[str, Any]:
    response = await speaker.ask("GET", path, headers={"a2a-version": version})
    assert response.status == 200
    return response.json()


@pytest.mark.proves("W-143", "W-219", "W-120", "W-121")
async def test_the_card_of_1_0_has_what_is_required_and_nothing_unknown(modern: Speaker) -> None:
    found = await card(modern)
    assert set(found) - {"interfaces"} <= MEMBERS, "but for where Cortex's clients look, who ask in 1.0's name"
    for required in ("name", "description", "version", "supportedInterfaces", "skills", "capabilities"):
        assert found[required], required
    for modes in ("defaultInputModes", "defaultOutputModes"):
        assert found[modes]
    for skill in found["skills"]:
        assert skill["id"] and skill["name"] and skill["description"] and skill["tags"]


@pytest.mark.proves("W-110", "W-144", "W-145", "W-146")
async def test_every_interface_on_the_card_answers_in_its_binding_and_version() -> None:
    async with serving() as (stage, app):
        found = await card(Speaker("1.0", "JSONRPC", stage, app))
        listed = [(each["protocolVersion"], each["protocolBinding"]) for each in found["supportedInterfaces"]]
        assert listed[:4] == SPEAKERS, "the newest version first, and in each the binding clients prefer"
        for each in found["supportedInterfaces"]:
            speaker = Speaker(each["protocolVersion"], each["protocolBinding"], stage, app)
            verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
            at = each["url"].removeprefix("http://127.0.0.1")
            response = await speaker.ask(verb, at + (path if speaker.rest else ""), body)
            seen = speaker.read_result(speaker.result(response, body.get("id")))
            assert (seen.state, seen.artifacts) == ("COMPLETED", ["echo hi"])


@pytest.mark.proves("W-144")
async def test_the_card_says_what_the_agent_can_do(modern: Speaker) -> None:
    able = (await card(modern))["capabilities"]
    assert able["streaming"] is True and able["pushNotifications"] is True
    async with serving(Stage(streaming=False), push=False) as (stage, app):
        still = Speaker(modern.version, modern.binding, stage, app)
        found = await card(still)
        assert found["capabilities"] == {
            "streaming": False,
            "pushNotifications": False,
            "extendedAgentCard": False,
            "extensions": [{"uri": "urn:known", "description": "echoed"}],
        }


@pytest.mark.proves("W-088")
async def test_0_3_finds_a_card_of_its_own_at_both_paths(modern: Speaker) -> None:
    for path in (PATH, "/.well-known/agent.json"):
        found = await card(modern, "0.3", path)
        assert found["protocolVersion"].startswith("0.3")
        assert found["url"] and found["preferredTransport"] == "JSONRPC"
        assert "supportedInterfaces" not in found


@pytest.mark.proves("W-160", "W-161")
async def test_a_card_says_how_long_it_is_good_and_is_not_sent_twice(modern: Speaker) -> None:
    async with serving(card_max_age="7m") as (stage, app):
        speaker = Speaker(modern.version, modern.binding, stage, app)
        first = await speaker.ask("GET", PATH)
        assert "max-age=420" in first.headers["cache-control"]
        again = await speaker.ask("GET", PATH, headers={"if-none-match": first.headers["etag"]})
        assert (again.status, again.body) == (304, b"")


@pytest.mark.proves("W-205")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_the_extended_card_may_not_be_kept_by_anybody_between(version: str) -> None:
    """Over HTTP, that is: nobody keeps the answer to a POST."""
    agent = Agent("Desk", description="Answers", extended=True)

    @agent.skill(tags=["a"])
    async def echo(turn: Turn) -> str:
        """Says it again."""
        return turn.text

    stage = Stage()
    stage.agent = agent
    async with serving(stage, open_extended_card=True) as (stage, app):
        asking = Speaker(version, "HTTP+JSON", stage, app)
        found = await asking.call("card", {})
        assert found["name"] == "Desk"
        kept = asking.last.headers["cache-control"]
        assert "no-store" in kept or "private" in kept
        assert "public" not in kept


@pytest.mark.parametrize(("version", "binding"), SPEAKERS)
async def test_callers_see_extended_cards_of_their_own(version: str, binding: str, tmp_path: Path) -> None:
    def for_caller(principal: Principal) -> Overlay | None:
        return Overlay(description=f"For {principal.id}") if "gold" in principal.scopes else None

    agent = Agent("Desk", description="For all", extended=for_caller)
    for id, extended in {"echo": False, "hidden": True, "vault": lambda principal: "gold" in principal.scopes}.items():
        agent.skill(id=id, extended=extended)(nothing)
    stage = Stage()
    stage.agent = agent
    callers = tmp_path / "callers.toml"
    callers.write_text(
        f'[anna]\ntoken = "{token_hash(b"anna")}"\nscopes = ["gold"]\n[bert]\ntoken = "{token_hash(b"bert")}"\n'
    )
    async with serving(stage, auth_callers=str(callers)) as (stage, app):
        asking = Speaker(version, binding, stage, app)

        async def seen(token: str) -> tuple[str, list[str]]:
            found = await asking.call("card", {}, headers={"authorization": f"Bearer {token}"})
            return found["description"], [skill["id"] for skill in found["skills"]]

        assert await seen("anna") == ("For caller:anna", ["echo", "hidden", "vault"])
        assert await seen("bert") == ("For all", ["echo", "hidden"])
        assert (await asking.ask(*asking.spelled("card", {}))).status == 401
        public = await asking.ask("GET", PATH)
        assert [skill["id"] for skill in public.json()["skills"]] == ["echo"]


async def nothing(turn: Turn) -> None: ...
