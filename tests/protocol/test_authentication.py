"""Logging in, in each version over each binding: what stays shut, what opens, and for how long."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Agent, Turn
from dragoman.auth.hashes import token_hash
from dragoman.testing.inprocess import Exchange, Lifespan, Response
from tests.protocol.speaking import SPEAKERS, Refused, Speaker, serving
from tests.protocol.stage import Stage

pytestmark = pytest.mark.anyio

Written = Callable[..., str]


@pytest.fixture
def callers(tmp_path: Path) -> Written:
    """Writes the callers' file: their names, each with a token of the same name, and more in TOML."""
    file = tmp_path / "callers.toml"

    def write(**more: str) -> str:
        file.write_text(
            "\n".join(f'[{name}]\ntoken = "{token_hash(name.encode())}"\n{rest}' for name, rest in more.items())
        )
        return str(file)

    return write


def logged_in(speaker: Speaker, name: str) -> Speaker:
    """The same speaker, with that caller's token in every request."""
    other = Speaker(speaker.version, speaker.binding, speaker.stage, speaker.app)
    plain = other.headers
    other.headers = lambda body, more: {"authorization": f"Bearer {name}", **plain(body, more)}  # pyright: ignore[reportAttributeAccessIssue]
    return other


@pytest.fixture(params=SPEAKERS, ids="-".join)
async def nobody(request: pytest.FixtureRequest, callers: Written) -> AsyncIterator[Speaker]:
    """Who has no token, at a server whose callers are ada and bob."""
    version, binding = request.param
    async with serving(auth_callers=callers(ada="", bob="")) as (stage, app):
        yield Speaker(version, binding, stage, app)


OPERATIONS: dict[str, dict[str, Any]] = {
    "get": {"id": "x"},
    "list": {},
    "cancel": {"id": "x"},
    "subscribe": {"id": "x"},
    "card": {},
    "push create": {"id": "x", "taskId": "x", "url": "https://example.com/"},
    "push get": {"id": "x", "taskId": "x"},
    "push list": {"id": "x", "taskId": "x"},
    "push delete": {"id": "x", "taskId": "x"},
}


@pytest.mark.proves("W-044", "W-045", "W-046", "W-127", "W-192", "W-203", "W-204")
@pytest.mark.parametrize("operation", ["send", "stream", *OPERATIONS])
async def test_every_operation_is_shut_to_nobody(nobody: Speaker, operation: str) -> None:
    params = OPERATIONS.get(operation) or nobody.sending("echo hi")
    verb, path, body = nobody.spelled(operation, params)
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer"}):
        answer = await nobody.ask(verb, path, body, headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith('Bearer realm="dragoman"')
    assert nobody.stage.runs == []


async def test_nothing_of_a_request_is_read_before_its_caller_is_known(nobody: Speaker) -> None:
    """Not even whether it is one: what comes from anybody is the attacker's choice."""
    for body in (b"{", b"[]", b"\xff", b'{"a":' * 1_000, b" " * (9 << 20)):
        verb, path, _ = nobody.spelled("send", nobody.sending("x"))
        answer = await nobody.ask(verb, path, body)
        assert answer.status == 401


@pytest.mark.proves("W-193")
async def test_each_caller_lives_alone(nobody: Speaker) -> None:
    ada, bob = logged_in(nobody, "ada"), logged_in(nobody, "bob")
    asked = await ada.send("ask")
    with pytest.raises(Refused) as caught:
        await bob.get(asked.id)
    assert caught.value.code == -32001
    if nobody.modern:
        assert [task["id"] for task in (await ada.list())["tasks"]] == [asked.id]
        assert (await bob.list())["tasks"] == []
    assert (await ada.send("blue", taskId=asked.id)).artifacts == ["You said blue"]


@pytest.mark.proves("W-203", "W-204")
@pytest.mark.parametrize(("version", "binding"), SPEAKERS)
async def test_the_extended_card_is_for_who_logged_in(version: str, binding: str, callers: Written) -> None:
    stage = Stage()

    @stage.agent.skill(extended=True)
    async def hidden(turn: Turn) -> str:  # pyright: ignore[reportUnusedFunction]
        return ""

    async with serving(stage, auth_callers=callers(ada="")) as (_, app):
        speaker = Speaker(version, binding, stage, app)
        verb, path, body = speaker.spelled("card", {})
        refused = await speaker.ask(verb, path, body)
        assert refused.status == 401 and "hidden" not in refused.text
        shown = await speaker.ask(verb, path, body, {"authorization": "Bearer ada"})
        assert shown.status == 200 and '"hidden"' in shown.text
        public = await speaker.ask("GET", "/.well-known/agent-card.json")
        assert public.status == 200 and "hidden" not in public.text


@pytest.mark.parametrize("method", ["GetExtendedAgentCard", "GetAgentCard", "agent/getAuthenticatedExtendedCard"])
async def test_the_systems_own_cards_inside_are_too(method: str, callers: Written) -> None:
    async with serving(auth_callers=callers(ada="")) as (stage, app):
        speaker = Speaker("1.0", "JSONRPC", stage, app)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        assert (await speaker.ask("POST", "/a2a", body)).status == 401
        answer = await speaker.ask("POST", "/a2a", body, {"authorization": "Bearer ada"})
        assert answer.status == 200 and answer.json()["result"]["name"] == "Stage"


# --- skills -------------------------------------------------------------------------------------------------


def scoped() -> Agent:
    agent = Agent("Desk")

    @agent.skill(scopes=["pay"])
    async def pay(turn: Turn) -> str:  # pyright: ignore[reportUnusedFunction]
        reply = await turn.ask("How much?")
        return f"paid {reply.text}"

    return agent


@asynccontextmanager
async def desk(agent: Agent, **settings: Any) -> AsyncGenerator[Speaker]:
    app = dragoman.asgi(agent, store="memory://", drain=0, **settings)
    lifespan = Lifespan(app)
    await lifespan.start()
    try:
        yield Speaker("1.0", "JSONRPC", Stage(), app)
    finally:
        await lifespan.stop()


async def put(speaker: Speaker, text: str, **members: Any) -> Response:
    return await speaker.ask(*speaker.spelled("send", speaker.sending(text, **members)))


@pytest.mark.proves("W-047", "W-048", "W-140", "W-142")
async def test_every_message_needs_the_scope_anew(callers: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the answer to a question: that the task waits gives nobody a right."""
    monkeypatch.setattr("dragoman.auth.callers.LOOK_MS", 0)
    async with desk(scoped(), auth_callers=callers(ada='scopes = ["pay"]')) as speaker:
        ada = logged_in(speaker, "ada")
        asked = (await put(ada, "go")).json()["result"]["task"]
        callers(ada="", other="")
        refused = await put(ada, "100", taskId=asked["id"])
        assert refused.status == 403 and "the scope pay, which" in refused.text
        assert (await ada.get(asked["id"])).state == "INPUT_REQUIRED"
        callers(ada='scopes = ["pay"]')
        assert (await ada.send("100", taskId=asked["id"])).artifacts == ["paid 100"]


async def test_where_nobody_logs_in_what_asks_for_a_scope_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with desk(scoped()) as speaker:
            refused = await put(speaker, "go")
            card = (await speaker.ask("GET", "/.well-known/agent-card.json")).json()
    assert refused.status == 403 and "the scope pay, which" in refused.text
    assert "scopes" not in card["skills"][0] and "securitySchemes" not in card
    assert "nobody can use them: pay" in caplog.text


# --- streams ------------------------------------------------------------------------------------------------


async def test_a_stream_ends_when_what_opened_it_is_taken_back_and_goes_on_after_a_new_login(
    callers: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.auth.callers.LOOK_MS", 0)
    monkeypatch.setattr("dragoman.gateway.admission.SECONDS", 0)
    settings: dict[str, Any] = {"auth_callers": callers(ada=""), "keepalive": "20ms"}
    async with serving(**settings) as (stage, app):
        ada = logged_in(Speaker("1.0", "JSONRPC", stage, app), "ada")
        async with ada.stream("steps") as stream:
            first = [await stream.next() for _ in range(2)]
            assert first[0] is not None
            cursor = stream.raw[-1].id
            callers(bob="")
            seen = await stream.rest()
            assert not any(event.state == "COMPLETED" for event in seen), "it ends without a word"
            cursor = stream.raw[-1].id or cursor
        assert (await ada.ask("GET", f"/tasks/{first[0].id}")).status == 401
        callers(ada="", bob="")
        stage.gate.set()
        async with ada.subscribe(first[0].id, cursor) as stream:
            rest = await stream.rest()
        assert rest[-1].state == "COMPLETED"
        assert not {frame.id for frame in stream.raw if frame.id} & {cursor}


async def test_a_stream_whose_caller_stays_stays(callers: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.admission.SECONDS", 0)
    async with serving(auth_callers=callers(ada=""), keepalive="20ms") as (stage, app):
        ada = logged_in(Speaker("1.0", "JSONRPC", stage, app), "ada")
        async with ada.stream("steps") as stream:
            await stream.until("WORKING")
            await asyncio.wait_for(stage.working.wait(), 10)
            stage.gate.set()
            assert (await stream.rest())[-1].state == "COMPLETED"


# --- as two systems have it -----------------------------------------------------------------------------------


def said(method: str, **more: Any) -> Any:
    message = {"role": "user", "parts": [{"kind": "text", "text": "echo hi"}], "contextId": "c"}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"message": message, "id": "t", **more}}


@pytest.mark.proves("003-d17")
async def test_a2x_asks_for_authentication_with_a_task_nobody_keeps(
    callers: Written, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman.auth")
    async with serving(auth_callers=callers(ada=""), auth_a2x_tasks=True) as (stage, app):
        speaker = Speaker("0.3", "JSONRPC", stage, app)
        answer = await speaker.ask("POST", "/api/a2a", said("message/send"))
        assert answer.status == 200
        task = answer.json()["result"]
        assert (task["kind"], task["status"]["state"], task["contextId"]) == ("task", "auth-required", "c")
        assert task["status"]["message"]["parts"] == [{"kind": "text", "text": "Authentication is required"}]
        wrong = await speaker.ask("POST", "/api/a2a", said("message/send"), {"authorization": "Bearer x"})
        assert "The credentials are not valid" in wrong.text

        exchange = Exchange(
            app, "POST", "/api/a2a", speaker.headers(b"x", None), json.dumps(said("message/stream")).encode()
        )
        await exchange.open()
        streamed = await exchange.whole()
        await exchange.close()
        (frame,) = [line for line in streamed.text.split("\n\n") if line]
        assert frame.startswith("data: ") and "id:" not in frame.split("data: ")[0]
        event = json.loads(frame.removeprefix("data: "))["result"]
        assert (event["kind"], event["status"]["state"], event["final"]) == ("status-update", "auth-required", True)

        for method in ("tasks/get", "tasks/cancel"):
            other = await speaker.ask("POST", "/api/a2a", said(method))
            assert (other.status, other.json()["error"]["code"], other.json()["id"]) == (200, -32600, 7)
        for body in (b"{", b"[]", json.dumps(said("no/such")).encode()):
            error = (await speaker.ask("POST", "/api/a2a", body)).json()["error"]
            assert (error["code"], error["message"]) == (-32600, "Authentication is required"), "nothing is told of it"
        for path in ("/", "/a2a", "/a2a/jsonrpc"):
            assert (await speaker.ask("POST", path, said("message/send"))).status == 401
        kept = await logged_in(speaker, "ada").ask("POST", "/api/a2a", said("tasks/get", id=task["id"]))
        assert kept.json()["error"]["code"] == -32001
        assert stage.runs == []
    refused = [record for record in caplog.records if record.getMessage().startswith("Refused: ")]
    assert len(refused) == 11, "each of them is written down all the same"


@pytest.mark.proves("002-d22")
async def test_simple_a2a_answers_with_a_number_and_no_status(callers: Written) -> None:
    async with serving(auth_callers=callers(ada=""), auth_simple_errors=True) as (stage, app):
        speaker = Speaker("0.3", "JSONRPC", stage, app)
        for method in ("tasks/send", "tasks/list", "tasks/pushNotification/list"):
            answer = await speaker.ask("POST", "/", said(method))
            assert answer.status == 200
            assert answer.json()["error"] == {"code": -32000, "message": "Authentication is required"}
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for method in ("message/send", "tasks/get", "SendMessage"):
            assert (await speaker.ask("POST", "/", said(method))).status == 401, "names of others"
        assert stage.runs == []


@pytest.mark.proves("002-d22", "003-d17")
async def test_by_default_both_answer_401(callers: Written) -> None:
    async with serving(auth_callers=callers(ada="")) as (stage, app):
        speaker = Speaker("0.3", "JSONRPC", stage, app)
        for path, method in (("/api/a2a", "message/send"), ("/", "tasks/send")):
            assert (await speaker.ask("POST", path, said(method))).status == 401


# --- what is written down ---------------------------------------------------------------------------------------


@pytest.mark.proves("W-209", "W-210")
async def test_who_was_refused_is_written_down_with_why_and_without_what(
    nobody: Speaker, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "a-token-that-is-wrong-and-still-a-secret"
    with caplog.at_level(logging.INFO, "dragoman.auth"):
        verb, path, body = nobody.spelled("send", nobody.sending("echo hi"))
        await nobody.ask(verb, path, body)
        await nobody.ask(verb, path, body, {"authorization": f"Bearer {secret}"})
    quiet, loud = [record for record in caplog.records if record.name == "dragoman.auth"]
    assert (quiet.levelno, quiet.getMessage()) == (logging.INFO, "Refused: nothing was presented")
    assert (loud.levelno, loud.getMessage()) == (logging.WARNING, "Refused: nobody has that token")
    assert vars(loud)["client"] == "127.0.0.1"
    assert secret not in caplog.text


@pytest.mark.proves("W-210")
async def test_who_lacked_a_scope_is_written_down_by_id(callers: Written, caplog: pytest.LogCaptureFixture) -> None:
    async with desk(scoped(), auth_callers=callers(ada="")) as speaker:
        with caplog.at_level(logging.INFO, "dragoman.auth"):
            await put(logged_in(speaker, "ada"), "go")
    (record,) = [record for record in caplog.records if record.name == "dragoman.auth"]
    assert record.getMessage().startswith("Denied: This needs the scope pay")
    assert vars(record)["dragoman.caller"] == "caller:ada"


# --- while the issuer is away -----------------------------------------------------------------------------------


async def test_while_nobody_can_judge_callers_are_told_to_try_again() -> None:
    from tests.auth.minting import AUDIENCE, claims, mint, pair
    from tests.serving import free_port

    issuer = f"http://127.0.0.1:{free_port()}"
    corp = {"type": "jwt", "issuer": issuer, "audience": [AUDIENCE]}
    async with serving(auth_schemes={"corp": corp}) as (stage, app):
        speaker = Speaker("1.0", "JSONRPC", stage, app)
        token = mint(pair(), claims(None, iss=issuer))
        verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
        answer = await speaker.ask(verb, path, body, {"authorization": f"Bearer {token}"})
        assert answer.status == 503 and answer.headers["retry-after"] == "5"
        assert issuer not in answer.text


# --- pages in browsers ------------------------------------------------------------------------------------------

EVIL = {"host": "evil.example", "origin": "https://evil.example"}


async def preflight(speaker: Speaker, **headers: str) -> Response:
    wanted = {"origin": "https://app.example", "access-control-request-method": "POST"}
    exchange = Exchange(speaker.app, "OPTIONS", "/", {**wanted, **headers}, b"")
    await exchange.open()
    try:
        return await exchange.whole()
    finally:
        await exchange.close()


async def test_a_page_cannot_borrow_what_browsers_do_not_send(callers: Written) -> None:
    """So any name and any origin may try; without a token of their own they get no further than anybody."""
    async with serving(auth_callers=callers(ada="")) as (stage, app):
        speaker = Speaker("1.0", "JSONRPC", stage, app)
        verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
        assert (await speaker.ask(verb, path, body, EVIL)).status == 401
        answer = await speaker.ask(verb, path, body, {**EVIL, "authorization": "Bearer ada"})
        assert answer.status == 200 and "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("scheme", [{"type": "basic"}, {"type": "api-key", "place": "cookie"}, {"type": "mtls"}])
async def test_but_what_they_do_send_is_kept_from_pages_of_others(callers: Written, scheme: dict[str, str]) -> None:
    schemes = {"ambient": scheme, "token": {"type": "bearer"}}
    async with serving(auth_callers=callers(ada=""), auth_schemes=schemes) as (stage, app):
        speaker = Speaker("1.0", "JSONRPC", stage, app)
        verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
        for given in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            answer = await speaker.ask(verb, path, body, {"authorization": "Bearer ada", **given})
            assert answer.status == 403
        assert (await speaker.ask(verb, path, body, {"authorization": "Bearer ada"})).status == 200


async def test_origins_that_are_configured_may_send_the_credentials_there_are(callers: Written) -> None:
    schemes = {"key": {"type": "api-key", "name": "X-Desk-Key"}}
    settings: dict[str, Any] = {"auth_schemes": schemes, "allowed_origins": "https://app.example"}
    async with serving(auth_callers=callers(ada=""), **settings) as (stage, app):
        speaker = Speaker("1.0", "JSONRPC", stage, app)
        allowed = (await preflight(speaker)).headers["access-control-allow-headers"].split(", ")
        assert {"Authorization", "X-Desk-Key"} <= set(allowed)
        verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
        assert (await speaker.ask(verb, path, body, {"origin": "https://evil.example"})).status == 403


@pytest.mark.proves("W-209", "W-212")
async def test_who_guesses_is_slowed_down_and_who_knows_is_not(callers: Written) -> None:
    """Whoever logs in is counted by name; what is wrong counts for the address it came from."""
    slow: dict[str, Any] = {"limit_rate_per_address": 1, "limit_rate_burst": 3, "limit_rate_wait": 0}
    slow["limit_rate_per_caller"] = 0  # for these there is no limit
    settings: dict[str, Any] = {"auth_callers": callers(ada=""), "limit_rate_loopback": True, **slow}
    async with serving(**settings) as (stage, app):
        speaker = Speaker("1.0", "JSONRPC", stage, app)
        verb, path, body = speaker.spelled("list", {})
        for _ in range(20):
            assert (await speaker.ask(verb, path, body, {"authorization": "Bearer ada"})).status == 200
        answers = [await speaker.ask(verb, path, body, {"authorization": f"Bearer guess-{n}"}) for n in range(8)]
        assert {answer.status for answer in answers[:3]} == {401}
        assert {answer.status for answer in answers[4:]} == {429}
        assert int(answers[-1].headers["retry-after"]) > 0
