"""Cards: one union both versions read, and the pure form of each."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.model.cards import Extension, Interface, Profile, Provider, Skill
from dragoman.wire.cards import CardSource, render, variant
from dragoman.wire.cards import version as version_of
from tests.wire.wording import body_of, call, understood, visit

ROTATE = Skill(id="rotate", name="Rotate", description="Turns pictures", tags=("image",), examples=("Turn it left",))
SECRET = Skill(id="mirror", name="Mirror", description="For friends", tags=("image",))
BARE = Profile(name="Turner", description="Turns things", version="3.1.0", skills=(ROTATE,))
FULL = Profile(
    name="Turner",
    description="Turns things",
    version="3.1.0",
    skills=(ROTATE,),
    input_modes=("image/webp",),
    output_modes=("image/webp",),
    provider=Provider(organization="Turners", url="https://turners.example"),
    documentation_url="https://turners.example/docs",
    icon_url="https://turners.example/i.png",
    extensions=(Extension(uri="urn:x", required=True, params={"a": 1}),),
    streaming=False,
    push=True,
    extended=True,
    extended_skills=(SECRET,),
)
RPC_03 = Interface(url="https://t.example/", binding="JSONRPC", version="0.3")
RPC_10 = Interface(url="https://t.example/", binding="JSONRPC", version="1.0")
REST_10 = Interface(url="https://t.example", binding="HTTP+JSON", version="1.0", tenant="studio")
REST_03 = Interface(url="https://t.example", binding="HTTP+JSON", version="0.3")
GRPC_03 = Interface(url="t.example:50051", binding="GRPC", version="0.3")
LEGACY = {"url", "preferredTransport", "protocolVersion", "additionalInterfaces", "supportsAuthenticatedExtendedCard"}


def card(profile: Profile, *interfaces: Interface, version: str = "", extended: bool = False) -> Any:
    return json.loads(render(CardSource(profile=profile, interfaces=interfaces, extended=extended), version))


def test_the_preferred_address_is_the_first_and_the_last_of_its_transport() -> None:
    """Clients of 0.3 that read the list take either."""
    other = Interface(url="https://t.example/a2a", binding="JSONRPC", version="0.3")
    found = card(BARE, RPC_03, REST_03, other, version="0.3")
    listed = [each["url"] for each in found["additionalInterfaces"] if each["transport"] == "JSONRPC"]
    assert found["url"] == listed[0] == listed[-1] == RPC_03.url
    assert other.url in listed


def test_a_small_agents_card() -> None:
    assert card(BARE, RPC_10, version="1.0") == {
        "name": "Turner",
        "description": "Turns things",
        "version": "3.1.0",
        "supportedInterfaces": [{"url": "https://t.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {
                "id": "rotate",
                "name": "Rotate",
                "description": "Turns pictures",
                "tags": ["image"],
                "examples": ["Turn it left"],
            }
        ],
    }


def test_the_old_card() -> None:
    assert card(FULL, RPC_10, RPC_03, version="0.3") == {
        "name": "Turner",
        "description": "Turns things",
        "version": "3.1.0",
        "protocolVersion": "0.3.0",
        "url": "https://t.example/",
        "preferredTransport": "JSONRPC",
        "provider": {"organization": "Turners", "url": "https://turners.example"},
        "documentationUrl": "https://turners.example/docs",
        "iconUrl": "https://turners.example/i.png",
        "capabilities": {
            "streaming": False,
            "pushNotifications": True,
            "extensions": [{"uri": "urn:x", "required": True, "params": {"a": 1}}],
        },
        "supportsAuthenticatedExtendedCard": True,
        "defaultInputModes": ["image/webp"],
        "defaultOutputModes": ["image/webp"],
        "skills": [
            {
                "id": "rotate",
                "name": "Rotate",
                "description": "Turns pictures",
                "tags": ["image"],
                "examples": ["Turn it left"],
            }
        ],
    }


def test_the_union_is_both_and_where_older_clients_look() -> None:
    interfaces = (RPC_03, RPC_10, REST_03, REST_10, GRPC_03)
    both = card(FULL, *interfaces)
    new = card(FULL, *interfaces, version="1.0")
    old = card(FULL, *interfaces, version="0.3")
    assert set(both) == set(new) | set(old) | {"interfaces"}
    assert {name: both[name] for name in new} == new
    assert {name: both[name] for name in old if name != "capabilities"} == {
        name: old[name] for name in old if name != "capabilities"
    }
    assert both["capabilities"] == {**old["capabilities"], "extendedAgentCard": True}


def test_cortex_finds_its_members_where_it_asks_for_the_new_card() -> None:
    profile = replace(BARE, transitions=True)
    source = CardSource(profile=profile, interfaces=(RPC_10, RPC_03), root="https://t.example", mounts=("/a2a",))
    new = json.loads(render(source, "1.0"))
    assert new["interfaces"] == json.loads(render(source, ""))["interfaces"]
    assert new["interfaces"][0]["protocol"] == "json-rpc" and "protocol" not in new["interfaces"][1]
    assert new["capabilities"]["stateTransitionHistory"]
    assert not LEGACY & set(new)
    strict = CardSource(profile=profile, interfaces=(RPC_10,), root="https://t.example", mounts=("/a2a",))
    for version in ("1.0", ""):
        only = json.loads(render(strict, version))
        assert "interfaces" not in only and "stateTransitionHistory" not in only["capabilities"]


def test_new_interfaces_come_first_in_the_order_given() -> None:
    both = card(BARE, RPC_03, RPC_10, REST_03, REST_10)
    assert [(each["protocolBinding"], each["protocolVersion"]) for each in both["supportedInterfaces"]] == [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
    ]
    assert both["supportedInterfaces"][1]["tenant"] == "studio"


def test_old_clients_find_every_address_as_a_url() -> None:
    old = card(BARE, RPC_10, RPC_03, GRPC_03)
    assert (old["url"], old["preferredTransport"]) == ("https://t.example/", "JSONRPC")
    assert old["additionalInterfaces"] == [
        {"url": "https://t.example/", "transport": "JSONRPC"},
        {"url": "http://t.example:50051", "transport": "GRPC"},
    ]
    assert {each["url"] for each in old["supportedInterfaces"]} >= {"t.example:50051"}


@pytest.mark.parametrize("version", ["", "1.0", "0.3"])
def test_an_agent_without_0_3_has_no_member_of_it(version: str) -> None:
    assert not LEGACY & set(card(FULL, RPC_10, version=version))


def test_the_extended_card_shows_more_skills() -> None:
    assert [skill["id"] for skill in card(FULL, RPC_10, extended=True)["skills"]] == ["rotate", "mirror"]
    assert [skill["id"] for skill in card(FULL, RPC_10)["skills"]] == ["rotate"]
    assert [skill["id"] for skill in card(BARE, RPC_10, extended=True)["skills"]] == ["rotate"]


@pytest.mark.parametrize(
    ("version", "wanted"),
    [("", ""), ("1.0", "1.0"), ("1.7", "1.0"), ("0.3", "0.3"), ("0.2", "0.3"), ("2.0", ""), ("x", "")],
)
def test_who_asks_in_a_version_gets_its_card(version: str, wanted: str) -> None:
    assert variant(version) == wanted


def test_the_extended_card_is_answered_in_the_callers_version() -> None:
    source = CardSource(profile=FULL, interfaces=(RPC_10, RPC_03), extended=True)
    new = body_of(understood(call("GetExtendedAgentCard", {})).reply(source))["result"]
    assert "supportedInterfaces" in new and "url" not in new
    old = body_of(understood(call("agent/getAuthenticatedExtendedCard")).reply(source))["result"]
    assert "supportedInterfaces" not in old and old["url"] == "https://t.example/"
    assert body_of(understood(visit("GET", "/extendedAgentCard")).reply(source)) == new
    assert body_of(understood(visit("GET", "/v1/card")).reply(source)) == old


@pytest.mark.parametrize(
    ("interfaces", "asked", "version"),
    [
        ((RPC_10, RPC_03), "", "1.0"),
        ((RPC_10, RPC_03), "1.0", "1.0"),
        ((RPC_10, RPC_03), "0.3", "0.3"),
        ((RPC_03,), "", "0.3"),
        ((RPC_03,), "1.0", "1.0"),
        ((RPC_10,), "0.3", "1.0"),
    ],
)
def test_a_card_says_which_version_it_is_in(interfaces: tuple[Interface, ...], asked: str, version: str) -> None:
    assert version_of(CardSource(profile=BARE, interfaces=interfaces), asked) == version
