"""What is served beside the protocol: cards with validators, probes, OPTIONS, CORS, and a description that is true."""

import json
import re
from base64 import urlsafe_b64decode
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.auth.keys import SigningKeys, generate, parse_keys
from dragoman.client.verifying import verify_card
from dragoman.gateway.desk import JWKS
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.cards import Extension, Profile, Skill
from dragoman.server.openapi import LEGACY, MODERN
from dragoman.server.settings import ServerSettings
from dragoman.wire.k03 import K03
from dragoman.wire.p10 import P10
from tests.server.rig import PROFILE, SEND, Running, ScriptedAgent, ScriptedEngine, request, rpc, running

pytestmark = pytest.mark.anyio

CARDS = ["/.well-known/agent-card.json", "/.well-known/agent.json"]


def get(target: str, **headers: str) -> bytes:
    return request("GET", target, headers={name.replace("_", "-"): value for name, value in headers.items()})


# --- cards


@pytest.mark.proves("W-143", "W-160", "W-161", "W-219", "S-9-9")
@pytest.mark.parametrize("path", CARDS)
async def test_a_card_comes_with_everything_needed_not_to_fetch_it_again(path: str) -> None:
    async with running(settings=ServerSettings(card_max_age=77)) as server:
        answer = await server.ask(get(path))
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "public, max-age=77"
        assert re.fullmatch(r'"[0-9a-f]{32}"', answer.headers["etag"])
        assert parsedate_to_datetime(answer.headers["last-modified"])
        assert answer.headers["vary"] == "Host, A2A-Version"
        assert answer.json()["name"] == "Desk"


@pytest.mark.proves("W-161")
@pytest.mark.parametrize("known", ["{etag}", "W/{etag}", '"other", {etag}', "*"])
async def test_a_card_somebody_has_already_is_not_sent_again(known: str) -> None:
    async with running() as server:
        etag = (await server.ask(get(CARDS[0]))).headers["etag"]
        again = await server.ask(get(CARDS[0], If_None_Match=known.format(etag=etag)))
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == etag
        assert "max-age" in again.headers["cache-control"]


async def test_a_card_is_compared_by_time_only_when_nothing_better_is_known() -> None:
    async with running() as server:
        modified = (await server.ask(get(CARDS[0]))).headers["last-modified"]
        assert (await server.ask(get(CARDS[0], If_Modified_Since=modified))).status == 304
        assert (await server.ask(get(CARDS[0], If_Modified_Since="Thu, 01 Jan 1970 00:00:00 GMT"))).status == 200
        assert (await server.ask(get(CARDS[0], If_Modified_Since="yesterday"))).status == 200
        assert (await server.ask(get(CARDS[0], If_Modified_Since=modified, If_None_Match='"other"'))).status == 200


async def test_each_version_has_its_own_card_and_its_own_tag() -> None:
    async with running() as server:
        union, modern, legacy = [
            await server.ask(get(CARDS[0], **headers))
            for headers in ({}, {"A2A_Version": "1.0"}, {"A2A_Version": "0.3"})
        ]
        assert len({union.headers["etag"], modern.headers["etag"], legacy.headers["etag"]}) == 3
        assert "protocolVersion" in union.json() and "supportedInterfaces" in union.json()
        assert "protocolVersion" not in modern.json()
        assert "supportedInterfaces" not in legacy.json()
        assert (await server.ask(get(f"{CARDS[0]}?A2A-Version=0.3"))).body == legacy.body


@pytest.mark.proves("S-9-9")
async def test_a_card_names_the_address_it_was_asked_at() -> None:
    async with running() as server:
        card = (await server.ask(get(CARDS[0], Host=f"localhost:{server.port}"))).json()
        assert card["url"] == f"http://localhost:{server.port}/"
        assert [each["url"] for each in card["supportedInterfaces"][:2]] == [
            f"http://localhost:{server.port}/",
            f"http://localhost:{server.port}",
        ]


@pytest.mark.proves("W-146")
async def test_the_addresses_on_a_card_are_ones_that_answer() -> None:
    async with running() as server:
        for each in (await server.ask(get(CARDS[0], Host=f"127.0.0.1:{server.port}"))).json()["supportedInterfaces"]:
            legacy = each["protocolVersion"] == "0.3"
            path = each["url"].removeprefix(f"http://127.0.0.1:{server.port}")
            if each["protocolBinding"] == "JSONRPC":
                method = "tasks/get" if legacy else "GetTask"
                answer = await server.ask(request(target=path, body=rpc(method, id="x")))
                assert "result" in answer.json()
            else:
                answer = await server.ask(get(f"{path}{'/v1' if legacy else ''}/tasks/x"))
                assert answer.status == 200


@pytest.mark.proves("S-9-9")
async def test_the_configured_address_wins_over_every_header() -> None:
    gateway = GatewaySettings(public_url="https://desk.example/a2a/", proxies=("127.0.0.1",))
    async with running(gateway=gateway) as server:
        card = (await server.ask(get(CARDS[0], X_Forwarded_Host="desk.example", X_Forwarded_Proto="http"))).json()
        assert card["url"] == "https://desk.example/a2a/"
        assert card["supportedInterfaces"][1]["url"] == "https://desk.example/a2a"


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        ({"X_Forwarded_Proto": "https", "X_Forwarded_Host": "desk.example"}, "https://desk.example/"),
        ({"X_Forwarded_Proto": "https"}, "https://127.0.0.1/"),
        ({"X_Forwarded_Host": "desk.example", "X_Forwarded_Port": "8443"}, "http://desk.example:8443/"),
        ({"X_Forwarded_Host": "desk.example", "X_Forwarded_Port": "80"}, "http://desk.example/"),
        ({"X_Forwarded_Host": "desk.example", "X_Forwarded_Prefix": "/a2a/"}, "http://desk.example/a2a/"),
        ({"Forwarded": 'for=10.0.0.9;host="desk.example:444";proto=https, for=127.0.0.1'}, "https://desk.example:444/"),
    ],
)
async def test_addresses_are_right_behind_a_trusted_proxy(headers: dict[str, str], url: str) -> None:
    gateway = GatewaySettings(proxies=("127.0.0.0/8",), hosts=("desk.example",))
    async with running(gateway=gateway) as server:
        assert (await server.ask(get(CARDS[0], **headers))).json()["url"] == url


@pytest.mark.parametrize(
    "headers",
    [{"X_Forwarded_Proto": "javascript"}, {"X_Forwarded_Prefix": '/a"b'}],
)
async def test_a_proxy_that_forwards_nonsense_is_refused(headers: dict[str, str]) -> None:
    async with running(gateway=GatewaySettings(proxies=("127.0.0.1",))) as server:
        assert (await server.ask(get(CARDS[0], **headers))).status == 400


@pytest.mark.proves("S-9-5")
async def test_forwarding_headers_of_anybody_else_are_refused() -> None:
    async with running() as server:
        for name in ("X_Forwarded_For", "X_Forwarded_Host", "X_Forwarded_Proto", "Forwarded", "X_Real_IP"):
            assert (await server.ask(get(CARDS[0], **{name: "a"}))).status == 403


async def test_several_agents_each_have_a_card_and_mounts_below_their_slug() -> None:
    def named(name: str) -> ScriptedAgent:
        skill = Skill(id="s", name="S", description="S", tags=("t",))
        return ScriptedAgent(Profile(name=name, description=name, version="1", skills=(skill,)))

    engine = ScriptedEngine()
    async with running(engine, agents={"first": named("First"), "second": named("Second")}) as server:
        root = (await server.ask(get(CARDS[0]))).json()
        first = (await server.ask(get(f"/agents/first{CARDS[0]}"))).json()
        second = (await server.ask(get(f"/agents/second{CARDS[1]}"))).json()
        assert (root["name"], root["url"]) == ("First", "http://127.0.0.1/")
        assert (first["name"], first["url"]) == ("First", "http://127.0.0.1/agents/first/")
        assert (second["name"], second["url"]) == ("Second", "http://127.0.0.1/agents/second/")
        for target in ("/", "/agents/first/", "/agents/first", "/agents/second", "/agents/second/"):
            assert (await server.ask(request(target=target, body=rpc()))).status == 200
        await server.ask(get("/agents/second/v1/tasks/x"))
        await server.ask(get("/agents/second/acme/tasks/x"))
        assert [call.scope.agent for _, call, _ in engine.calls] == ["first"] * 3 + ["second"] * 4
        assert engine.calls[-1][1].scope.tenant == "acme"
        assert (await server.ask(get(f"/agents/third{CARDS[0]}"))).status == 404


async def test_cards_kept_are_bounded_however_many_names_they_are_asked_by() -> None:
    async with running(gateway=GatewaySettings(hosts=("*",)), settings=ServerSettings(card_cache=4)) as server:
        for number in range(12):
            assert (await server.ask(get(CARDS[0], Host=f"h{number}.example"))).status == 200
        assert len(server.listener._site._pages._cards._kept) <= 4


async def test_the_extended_card_has_its_own_skills_and_the_same_addresses() -> None:
    hidden = Skill(id="hidden", name="Hidden", description="For friends", tags=("h",))
    agent = ScriptedAgent(replace(PROFILE, extended=True, extended_skills=(hidden,)))
    asks = (request(body=rpc("GetExtendedAgentCard", tenant="")), get("/extendedAgentCard"), get("/v1/card"))
    async with running(agents={"": agent}) as server:
        for data in asks:
            answer = await server.ask(data)
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
    async with running(agents={"": agent}, gateway=GatewaySettings(open_extended_card=True)) as server:
        for data in asks:
            told = (await server.ask(data)).json()
            card = told.get("result", told)
            assert [skill["id"] for skill in card["skills"]] == ["answer", "hidden"]
            assert "http://127.0.0.1/" in str(card)
        public = (await server.ask(get(CARDS[0]))).json()
        assert [skill["id"] for skill in public["skills"]] == ["answer"]


@pytest.mark.proves("W-108", "W-106")
@pytest.mark.parametrize("header", ["A2A-Extensions", "X-A2A-Extensions"])
async def test_extensions_that_took_effect_are_named_back_and_no_others(header: str) -> None:
    agent = ScriptedAgent(replace(PROFILE, extensions=(Extension(uri="urn:known"), Extension(uri="urn:idle"))))
    async with running(agents={"": agent}) as server:
        for method in ("SendMessage", "SendStreamingMessage"):
            line = await server.dial()
            line.write(request(body=rpc(method), headers={header: "urn:other, urn:known"}))
            _, headers = await line.head()
            assert headers["a2a-extensions"] == "urn:known"


# --- probes


@pytest.mark.parametrize("path", ["/healthz", "/health", "/ping", "/readyz"])
async def test_probes_answer_whatever_host_they_are_called_by(path: str) -> None:
    async with running() as server:
        answer = await server.ask(get(path, Host="10.1.2.3"))
        assert answer.status == 200
        assert answer.headers["cache-control"] == "no-store"
        assert (await server.ask(request("HEAD", path), bodiless=True)).status == 200
        assert (await server.ask(request("POST", path))).status == 405


async def test_readiness_is_withdrawn_while_stopping_and_life_is_not() -> None:
    async with running() as server:
        server.listener._site.readiness.stage = "stopping"
        ready = await server.ask(get("/readyz"))
        assert (ready.status, ready.json()) == (503, {"status": "stopping"})
        assert (await server.ask(get("/healthz"))).status == 200


# --- verbs and paths


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/", {"POST", "OPTIONS"}),
        ("/tasks", {"GET", "HEAD", "OPTIONS"}),
        ("/message:send", {"POST", "OPTIONS"}),
        ("/v1/tasks/x:subscribe", {"GET", "POST", "HEAD", "OPTIONS"}),
        ("/acme/tasks/x:cancel", {"POST", "OPTIONS"}),
        ("/tasks/x/pushNotificationConfigs/y", {"GET", "DELETE", "HEAD", "OPTIONS"}),
        (CARDS[0], {"GET", "HEAD", "OPTIONS"}),
        ("/healthz", {"GET", "HEAD", "OPTIONS"}),
        ("/openapi.json", {"GET", "HEAD", "OPTIONS"}),
    ],
)
async def test_every_path_says_what_may_be_done_with_it(target: str, allowed: set[str]) -> None:
    async with running() as server:
        options = await server.ask(request("OPTIONS", target))
        refusal = await server.ask(request("PUT", target))
        assert (options.status, options.body, refusal.status) == (204, b"", 405)
        assert set(options.headers["allow"].split(", ")) == allowed
        if target != CARDS[0]:
            assert set(refusal.headers["allow"].split(", ")) == allowed


async def test_options_for_the_whole_server_is_answered() -> None:
    async with running() as server:
        assert (await server.ask(request("OPTIONS", "*"))).status == 204


@pytest.mark.parametrize("target", ["/nothing/here", "/v1/nothing", "/.well-known/other", "/tasks/a/b/c", "/agents/x/"])
async def test_an_unknown_path_is_not_found_by_any_verb(target: str) -> None:
    async with running() as server:
        for method in ("GET", "POST", "OPTIONS", "DELETE"):
            answer = await server.ask(request(method, target))
            assert answer.status == 404
            assert answer.json()


async def test_an_absolute_target_is_read_like_its_path() -> None:
    async with running() as server:
        assert (await server.ask(get("http://127.0.0.1/tasks/x?historyLength=1"))).status == 200
        assert server.engine.calls[0][2].history_length == 1


async def test_unknown_query_parameters_are_ignored_everywhere() -> None:
    async with running() as server:
        for data in (
            get("/tasks/x?foo=bar&historyLength=1"),
            get(f"{CARDS[0]}?v=3"),
            get("/healthz?x"),
            request(target="/?session=1", body=rpc()),
        ):
            assert (await server.ask(data)).status == 200


# --- CORS

PAGE = "https://app.example"


def preflight(origin: str = PAGE, **more: str) -> bytes:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", **more}
    return request("OPTIONS", "/", headers=asked)


@pytest.mark.proves("S-9-2")
async def test_pages_from_elsewhere_are_refused_and_learn_nothing() -> None:
    async with running() as server:
        for data in (request(body=rpc(), headers={"Origin": PAGE}), preflight(), get(CARDS[0], Origin="null")):
            answer = await server.ask(data)
            assert answer.status == 403
            assert not any(name.startswith("access-control") for name in answer.headers)
        assert server.engine.calls == []


async def test_our_own_pages_may_call() -> None:
    async with running() as server:
        host = f"127.0.0.1:{server.port}"
        answer = await server.ask(request(body=rpc(), headers={"Origin": f"http://{host}", "Host": host}))
        assert answer.status == 200


async def test_pages_of_a_configured_origin_may_ask_call_and_read() -> None:
    async with running(gateway=GatewaySettings(origins=(PAGE,))) as server:
        asked = await server.ask(preflight(**{"Access-Control-Request-Private-Network": "true"}))
        assert asked.status == 204
        assert asked.headers["access-control-allow-origin"] == PAGE
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert "Last-Event-ID" in asked.headers["access-control-allow-headers"]
        assert asked.headers["access-control-allow-private-network"] == "true"
        for data in (request(body=rpc(), headers={"Origin": PAGE}), get("/nothing/here", Origin=PAGE)):
            answer = await server.ask(data)
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert answer.headers["vary"] == "Origin"
        line = await server.dial()
        line.write(request(body=rpc("SendStreamingMessage"), headers={"Origin": PAGE}))
        _, headers = await line.head()
        assert headers["access-control-allow-origin"] == PAGE
        assert (await server.ask(request(body=rpc(), headers={"Origin": "https://evil.example"}))).status == 403


async def test_a_card_for_a_page_varies_by_page_too() -> None:
    async with running(gateway=GatewaySettings(origins=("*",))) as server:
        answer = await server.ask(get(CARDS[0], Origin=PAGE))
        assert answer.headers["vary"] == "Host, A2A-Version, Origin"


# --- keys


def keys() -> SigningKeys:
    return SigningKeys([*parse_keys(generate("ES256")), *parse_keys(generate("RS256"))])


async def test_public_keys_are_published_at_the_root_to_be_kept() -> None:
    signer = keys()
    async with running(signer=signer, settings=ServerSettings(card_max_age=77)) as server:
        answer = await server.ask(get(JWKS))
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.headers["cache-control"] == "public, max-age=77"
        assert answer.body == signer.jwks()
        assert [key["alg"] for key in answer.json()["keys"]] == ["ES256", "RS256"]
        again = await server.ask(get(JWKS, If_None_Match=answer.headers["etag"]))
        assert (again.status, again.body) == (304, b"")
        written = await server.ask(request("POST", JWKS, b"{}"))
        assert (written.status, written.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        assert (await server.ask(request("OPTIONS", JWKS))).headers["allow"] == "GET, HEAD, OPTIONS"
        assert JWKS in (await described(server))["paths"]


async def test_keys_are_the_deployments_and_not_an_agents() -> None:
    agents = {"": ScriptedAgent(), "desk": ScriptedAgent()}
    async with running(signer=keys(), agents=agents) as server:
        assert (await server.ask(get(f"/agents/desk{JWKS}"))).status == 404
        assert JWKS not in (await server.ask(get("/agents/desk/openapi.json"))).json()["paths"]


async def test_without_keys_none_are_published() -> None:
    async with running() as server:
        assert (await server.ask(get(JWKS))).status == 404
        assert JWKS not in (await described(server))["paths"]


# --- signed cards

VARIANTS = {"": ("supportedInterfaces", "url"), "1.0": ("supportedInterfaces",), "0.3": ("url",)}


@pytest.mark.proves("W-155")
@pytest.mark.parametrize("version", VARIANTS)
@pytest.mark.parametrize("path", CARDS)
async def test_every_card_is_signed_in_its_own_form(path: str, version: str) -> None:
    signer = keys()
    async with running(signer=signer) as server:
        asked = {"A2A_Version": version} if version else {}
        answer = await server.ask(get(path, **asked))
        card = answer.json()
        assert set(VARIANTS[version]) <= set(card)
        found = verify_card(answer.body, signer.jwks())
        assert found.card["name"] == "Desk"
        assert found.keys_at == f"http://127.0.0.1{JWKS}"
        for each in card["signatures"]:
            head = json.loads(urlsafe_b64decode(each["protected"] + "=="))
            assert head == {"alg": "ES256", "kid": found.key, "typ": "JOSE", "jku": found.keys_at}
        again = await server.ask(get(path, If_None_Match=answer.headers["etag"], **asked))
        assert again.status == 304  # signed once, not once per request


async def test_cards_are_signed_for_the_address_they_were_asked_for_under() -> None:
    settings = GatewaySettings(hosts=("desk.example", "127.0.0.1"))
    signer = keys()
    async with running(signer=signer, gateway=settings) as server:
        for host in ("desk.example", "desk.example:8443"):
            answer = await server.ask(get(CARDS[0], Host=host))
            found = verify_card(answer.body, signer.jwks())
            assert found.card["supportedInterfaces"][0]["url"] == f"http://{host}/"


@pytest.mark.parametrize("hosts", [("*",), ("*.example",)])
async def test_a_name_that_anybody_may_have_gets_no_signature(hosts: tuple[str, ...]) -> None:
    """Else our key would vouch for a card that leads to whoever asked for it."""
    async with running(signer=keys(), gateway=GatewaySettings(hosts=hosts)) as server:
        answer = await server.ask(get(CARDS[0], Host="evil.example"))
        assert answer.json()["url"] == "http://evil.example/"
        assert "signatures" not in answer.json()
    public = GatewaySettings(hosts=hosts, public_url="https://desk.example")
    async with running(signer=keys(), gateway=public) as server:
        card = (await server.ask(get(CARDS[0], Host="evil.example"))).json()
        assert card["url"] == "https://desk.example/"
        assert card["signatures"]


async def test_the_extended_card_is_signed_too() -> None:
    secret = Skill(id="deep", name="Deep", description="For friends", tags=("a",))
    profile = replace(PROFILE, extended=True, extended_skills=(secret,))
    signer = keys()
    settings = GatewaySettings(open_extended_card=True)
    async with running(signer=signer, gateway=settings, agents={"": ScriptedAgent(profile)}) as server:
        for body in (
            (await server.ask(get("/extendedAgentCard", A2A_Version="1.0"))).json(),
            (await server.ask(get("/v1/card"))).json(),
            (await server.ask(request(body=rpc("GetExtendedAgentCard", tenant="")))).json()["result"],
        ):
            assert verify_card(body, signer.jwks()).card["skills"][-1]["id"] == "deep"


async def test_without_keys_cards_are_not_signed() -> None:
    async with running() as server:
        assert "signatures" not in (await server.ask(get(CARDS[0]))).json()


# --- the description


async def described(server: Running) -> Any:
    answer = await server.ask(get("/openapi.json"))
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def filled(template: str) -> str:
    return re.sub(r"\{\w+\}", "x", template)


async def test_every_documented_verb_is_served_and_no_other() -> None:
    async with running() as server:
        for template, item in (await described(server))["paths"].items():
            allowed = (await server.ask(request("OPTIONS", filled(template)))).headers["allow"]
            documented = {verb.upper() for verb in item if verb != "parameters"}
            assert documented == set(allowed.split(", ")) - {"HEAD", "OPTIONS"}, template


async def test_every_route_and_method_there_is_is_documented() -> None:
    async with running() as server:
        description = await described(server)
        paths = set(description["paths"])
        assert {*MODERN, *(f"/v1{path}" for path in LEGACY), *CARDS, "/", "/healthz", "/readyz"} <= paths
        methods = description["components"]["schemas"]["JsonRpcRequest"]["properties"]["method"]["enum"]
        assert set(methods) == {*P10.methods, *K03.methods}


async def test_every_operation_of_the_protocol_is_documented_over_http_too() -> None:
    async with running() as server:
        paths = (await described(server))["paths"]
        told = {item[verb]["summary"] for item in paths.values() for verb in item if verb != "parameters"}
        for version, dialect in (("1.0", P10), ("0.3", K03)):
            missing = {name for name in dialect.methods.values() if f"{name} ({version})" not in told}
            assert not missing


async def test_every_reference_in_the_description_leads_somewhere() -> None:
    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    async with running() as server:
        description = await described(server)
        schemas = description["components"]["schemas"]
        found = references(description)
        assert found
        assert {each.rpartition("/")[2] for each in found} <= set(schemas)
        assert description["servers"] == [{"url": "http://127.0.0.1"}]


async def test_push_configurations_are_described_as_1_0_has_them() -> None:
    async with running() as server:
        schemas = (await described(server))["components"]["schemas"]
        assert set(schemas["PushConfig"]["properties"]) == {
            "authentication",
            "id",
            "taskId",
            "tenant",
            "token",
            "url",
        }


async def test_the_description_of_an_agent_elsewhere_names_that_place_and_no_probes() -> None:
    async with running(agents={"a": ScriptedAgent(), "b": ScriptedAgent()}) as server:
        description = (await server.ask(get("/agents/b/openapi.json"))).json()
        assert description["servers"] == [{"url": "http://127.0.0.1/agents/b"}]
        assert "/healthz" not in description["paths"]


async def test_the_door_is_passed_before_any_page_is_shown() -> None:
    async with running() as server:
        for target in (CARDS[0], "/openapi.json", "/tasks"):
            assert (await server.ask(get(target, Host="evil.example"))).status == 403
        assert (await server.ask(SEND)).status == 200
