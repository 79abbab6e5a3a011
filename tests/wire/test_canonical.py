"""What a card's signature is made over."""

import json
from typing import Any

import pytest

from dragoman.ports import Sealed
from dragoman.wire.canonical import Uncanonical, candidates, canonical, compact, old, payloads, signatures, specified

RPC = {"url": "https://t.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}


def card(**members: Any) -> dict[str, Any]:
    return {
        "name": "Turner",
        "description": "Turns",
        "version": "1",
        "supportedInterfaces": [RPC],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "a", "name": "A", "description": "Turns", "tags": ["x"]}],
        **members,
    }


def signed(value: bytes) -> Any:
    return json.loads(value)


# --- canonical JSON


@pytest.mark.proves("W-149")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        ({"\U0001f600": 1, "\ufb33": 2, "€": 3}, '{"€":3,"\U0001f600":1,"\ufb33":2}'),  # by UTF-16 code units
        ({"t": '\u0000\b\t\n\f\r"\\/<\u007fé'}, '{"t":"\\u0000\\b\\t\\n\\f\\r\\"\\\\/<\u007fé"}'),
        ([333333333.33333329, 1e30, 4.50, 2e-3, 1e-27, 1.0, -0.0], "[333333333.3333333,1e+30,4.5,0.002,1e-27,1,0]"),
        ([2**53 - 1, 2**53, 2**60, 10**22], "[9007199254740991,9007199254740992,1152921504606847000,1e+22]"),
    ],
)
def test_canonical_json_is_that_of_rfc_8785(value: Any, expected: str) -> None:
    assert canonical(value).decode() == expected


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, float("nan"), 10**400])
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(Uncanonical):
        canonical({"a": value})


def test_what_nests_too_deep_is_refused_before_it_is_read() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    for make in (candidates, payloads):
        for document in (card(capabilities={"extensions": [{"params": {"a": deep}}]}), {"url": "x", "params": deep}):
            with pytest.raises(Uncanonical, match="deep"):
                make(document)


# --- the specification's rule


@pytest.mark.proves("W-149", "W-152", "W-153")
def test_the_specifications_own_example() -> None:
    example = {
        "name": "Example Agent",
        "description": "",
        "capabilities": {"streaming": False, "pushNotifications": False, "extensions": []},
        "skills": [],
    }
    assert specified(example) == (
        b'{"capabilities":{"pushNotifications":false,"streaming":false},"description":"",'
        b'"name":"Example Agent","skills":[]}'
    )


@pytest.mark.proves("W-150")
def test_optional_members_that_are_not_set_are_not_signed() -> None:
    assert signed(specified(card(documentationUrl=None, provider=None))) == card()


@pytest.mark.proves("W-151")
def test_optional_members_that_are_set_are_signed_default_or_not() -> None:
    capabilities = {"streaming": False, "pushNotifications": True, "extendedAgentCard": False}
    full = card(capabilities=capabilities, documentationUrl="", iconUrl="")
    assert signed(specified(full)) == full


@pytest.mark.proves("W-152")
def test_required_members_are_signed_empty_or_not() -> None:
    full = card(
        description="",
        skills=[{"id": "", "name": "", "description": "", "tags": []}],
        supportedInterfaces=[{"url": "", "protocolBinding": "", "protocolVersion": ""}],
        defaultInputModes=[],
        provider={"url": "", "organization": ""},
    )
    assert signed(specified(full)) == full


@pytest.mark.proves("W-153")
def test_other_members_with_their_default_are_not_signed() -> None:
    full = card(
        supportedInterfaces=[{**RPC, "tenant": ""}],
        capabilities={"extensions": [{"uri": "urn:x", "description": "", "required": False, "params": {"a": ""}}]},
        securitySchemes={
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key", "description": ""}},
            "tls": {"mtlsSecurityScheme": {}},
            "login": {
                "oauth2SecurityScheme": {
                    "flows": {"clientCredentials": {"tokenUrl": "https://t", "refreshUrl": "", "scopes": {}}}
                }
            },
        },
        securityRequirements=[{"schemes": {"key": {"list": []}}}],
        skills=[{"id": "a", "name": "A", "description": "", "tags": [], "examples": [], "securityRequirements": []}],
    )
    assert signed(specified(full)) == card(
        capabilities={"extensions": [{"uri": "urn:x", "params": {"a": ""}}]},
        securitySchemes={
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
            "tls": {"mtlsSecurityScheme": {}},
            "login": {
                "oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://t", "scopes": {}}}}
            },
        },
        securityRequirements=[{"schemes": {"key": {}}}],
        skills=[{"id": "a", "name": "A", "description": "", "tags": []}],
    )


@pytest.mark.proves("W-154")
def test_signatures_are_not_signed() -> None:
    assert payloads(card(signatures=[{"protected": "a", "signature": "b"}])) == payloads(card())
    before = {"name": "Old", "url": "https://t", "version": "1"}
    assert candidates(before | {"signatures": []}) == candidates(before)


def test_members_that_1_0_does_not_know_are_not_signed() -> None:
    assert specified(card(url="https://t", interfaces=[{"type": "json-rpc"}], x=1)) == specified(card())


def test_the_official_sdks_sign_nothing_that_is_empty_at_any_depth() -> None:
    full = card(
        description="",
        capabilities={
            "streaming": False,
            "extensions": [{"uri": "urn:x", "params": {"a": "", "b": [{}, None], "c": 0}}],
        },
        securityRequirements=[{"schemes": {"key": {"list": []}}}],
    )
    expected = card(capabilities={"streaming": False, "extensions": [{"uri": "urn:x", "params": {"c": 0}}]})
    del expected["description"]
    assert signed(compact(full)) == expected


@pytest.mark.parametrize(
    "members",
    [
        {"name": 3},
        {"skills": {}},
        {"skills": ["a"]},
        {"capabilities": []},
        {"capabilities": {"streaming": "yes"}},
        {"securitySchemes": []},
        {"securitySchemes": {"a": 1}},
    ],
)
def test_what_is_not_shaped_like_a_card_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(Uncanonical, match="shaped"):
        specified(card(**members))


# --- 0.3


def test_a2a_sdk_0_3_signs_what_is_not_a_default_in_ascii() -> None:
    before = {
        "name": "Übung",
        "description": "",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "url": "https://t",
        "capabilities": {"streaming": False, "extendedAgentCard": True},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X", "apiKeySecurityScheme": {}}},
        "security": [{"key": []}],
        "supportedInterfaces": [RPC],
    }
    assert old(before) == (
        b'{"capabilities":{"streaming":false},"name":"\\u00dcbung",'
        b'"securitySchemes":{"key":{"in":"header","name":"X"}},"url":"https://t"}'
    )
    assert b'"preferredTransport":"GRPC","protocolVersion":"0.3.1"' in old(
        before | {"preferredTransport": "GRPC", "protocolVersion": "0.3.1"}
    )


# --- what is signed


def seal(payload: bytes) -> Sealed:
    return Sealed("head", payload.hex())


@pytest.mark.parametrize(
    ("document", "forms"),
    [
        (card(), 1),  # by the rule and as the SDKs sign are one
        (card(description=""), 2),
        (card(url="https://t"), 2),
        (card(description="", url="https://t"), 3),
        ({"name": "Old", "url": "https://t", "protocolVersion": "0.3.0"}, 2),
        ({"name": "Old", "url": "https://t"}, 1),
    ],
)
def test_a_card_carries_one_signature_for_each_way_it_is_checked(document: dict[str, Any], forms: int) -> None:
    made = signatures(document, seal)
    assert [bytes.fromhex(each["signature"]) for each in made] == payloads(document)
    assert len(made) == forms
    assert {each["protected"] for each in made} == {"head"}
