"""What no client should send: over a real socket, to the whole server, in every version and binding.

Nothing of it leaves a task behind, nothing of it shows what we are made of, and the next request is served.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from dragoman import Agent, Part, Turn
from tests.server.rig import Answer, request
from tests.server.test_connection import drip
from tests.server.whole import Whole, whole

pytestmark = pytest.mark.anyio

INSIDE = (b"Traceback", b'File "', b"site-packages", b"msgspec", b"Error:", b"SELECT", b".py")


class Way(NamedTuple):
    """How to send a message: where, in which version, in whose words."""

    path: str
    version: str
    method: str = ""  # of JSON-RPC
    kinds: bool = False  # parts have a kind, roles are lower-case
    parts: str = "parts"

    @property
    def rpc(self) -> bool:
        return bool(self.method)

    def part(self, text: str = "hi") -> dict[str, Any]:
        return {"kind": "text", "text": text} if self.kinds else {"text": text}

    def message(self, **members: Any) -> dict[str, Any]:
        role = "user" if self.kinds else "ROLE_USER"
        message = {"messageId": "m", "role": role, self.parts: [self.part()], **members}
        return {"kind": "message", **message} if self.kinds else message

    def around(self, params: Any) -> Any:
        return {"jsonrpc": "2.0", "id": "r", "method": self.method, "params": params} if self.rpc else params

    def body(self, **members: Any) -> bytes:
        """A send whose message has these members (MISSING: has not)."""
        message = {name: value for name, value in self.message(**members).items() if value is not MISSING}
        return json.dumps(self.around({"message": message})).encode()

    def request(self, body: bytes, **headers: str) -> bytes:
        given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        version = {"A2A-Version": self.version} if self.version else {}
        return request(target=self.path, body=body, headers=given | version | headers)


MISSING: Any = object()
WAYS = {
    "JSON-RPC 1.0": Way("/", "1.0", "SendMessage"),
    "JSON-RPC 1.0 stream": Way("/", "1.0", "SendStreamingMessage"),
    "JSON-RPC 0.3": Way("/", "", "message/send", kinds=True),
    "HTTP+JSON 1.0": Way("/message:send", "1.0"),
    "HTTP+JSON 1.0 stream": Way("/message:stream", "1.0"),
    "HTTP+JSON 0.3": Way("/v1/message:send", "", parts="content"),
    "a tenant's": Way("/acme/message:send", "1.0"),
    "/a2a/jsonrpc": Way("/a2a/jsonrpc", "", "message/send", kinds=True),
    "/a2a": Way("/a2a", "", "message/send", kinds=True),
    "/a2a of 1.0": Way("/a2a", "1.0", "SendMessage"),
    "/api/a2a": Way("/api/a2a", "", "message/send", kinds=True),
}
SPOKEN = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
RPC = [way for way in WAYS.values() if way.rpc]
ENVELOPED = pytest.mark.parametrize("way", RPC, ids=[name for name, way in WAYS.items() if way.rpc])


def agent() -> Agent:
    made = Agent("Misused")

    @made.skill
    async def echo(turn: Turn) -> list[Part]:
        return list(turn.parts)

    return made


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Whole]:
    """After each test: no task, nothing logged as a fault of ours, and still at everybody's service."""
    async with whole(agent(), limit_parts=5) as served:
        yield served
        assert await served.tasks() == [] and await served.tasks("acme") == []
        assert not [each for each in caplog.records if each.levelno >= logging.ERROR], caplog.text
        answer = await served.ask(WAYS["HTTP+JSON 1.0"].request(WAYS["HTTP+JSON 1.0"].body()))
        assert answer.json()["task"]["artifacts"][0]["parts"] == [{"text": "hi"}]


def refused(answer: Answer) -> dict[str, Any]:
    """The error in an answer, whatever its shape; nothing in it tells what is inside."""
    for mark in INSIDE:
        assert mark not in answer.body, mark
    told = answer.json()
    if "jsonrpc" in told:
        assert told["jsonrpc"] == "2.0" and "result" not in told
        return told["error"]
    assert answer.status >= 400
    return told.get("error", told)


def named(error: dict[str, Any]) -> str:
    """Everything an error says about what is wrong."""
    return json.dumps(error)


async def ask(server: Whole, way: Way, body: bytes, **headers: str) -> dict[str, Any]:
    return refused(await server.ask(way.request(body, **headers)))


# --- not JSON, or not this JSON

NO_JSON = (b"", b" ", b"{", b"hello", b"{'a':1}", b'{"a":1}}', b"\xef\xbb\xbf{}", b"\x00", b'{"a":NaN}', b'{"a":01}')


@SPOKEN
async def test_what_is_no_json(server: Whole, way: Way) -> None:
    for body in NO_JSON:
        error = await ask(server, way, body)
        assert error["code"] in (-32700, 400) or error["type"] == "JSONParseError", body


@SPOKEN
async def test_json_of_another_type(server: Whole, way: Way) -> None:
    for body in (b"[]", b"null", b"3", b'"text"', b"true", b"[1,2]"):
        error = await ask(server, way, body)
        assert error["code"] in (-32600, -32602, 400), body


@ENVELOPED
async def test_a_batch(server: Whole, way: Way) -> None:
    error = await ask(server, way, b"[%b,%b]" % (way.body(), way.body()))
    assert error["code"] == -32600


@ENVELOPED
async def test_an_odd_id(server: Whole, way: Way) -> None:
    for id in (b"{}", b"[]", b"true", b"1.5", b'"%b"' % (b"x" * 1_001)):
        answer = await server.ask(way.request(way.body().replace(b'"id": "r"', b'"id": ' + id)))
        assert refused(answer)["code"] == -32600 and answer.json()["id"] is None, id


@ENVELOPED
async def test_an_envelope_that_is_none(server: Whole, way: Way) -> None:
    for wrong in ({"jsonrpc": MISSING}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"method": MISSING}, {"method": 3}):
        envelope = json.loads(way.body()) | wrong
        body = json.dumps({name: value for name, value in envelope.items() if value is not MISSING})
        answer = await server.ask(way.request(body.encode()))
        assert refused(answer)["code"] == -32600 and answer.json()["id"] == "r", wrong


@ENVELOPED
async def test_an_unknown_method(server: Whole, way: Way) -> None:
    for method in ("NoSuchMethod", "message/nothing", "__init__", "SendMessage\r\nX: y", "x" * 9_999):
        error = await ask(server, way, json.dumps(json.loads(way.body()) | {"method": method}).encode())
        assert error["code"] == -32601 and len(named(error)) < 500, method


@ENVELOPED
async def test_parameters_that_are_no_object(server: Whole, way: Way) -> None:
    for params in ([], [1], "text", 3, True):
        error = await ask(server, way, json.dumps(way.around(params)).encode())
        assert error["code"] == -32602, params


# --- wrong inside


@SPOKEN
async def test_wrong_types_deep_inside_are_named_by_their_path(server: Whole, way: Way) -> None:
    parts = way.parts
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"messageId": 5}, "message.messageId"),
        ({"role": "ROLE_KING"}, "message.role"),
        ({"role": {}}, "message.role"),
        ({parts: "hi"}, f"message.{parts}"),
        ({parts: [7]}, f"message.{parts}[0]"),
        ({parts: [way.part(), "hi"]}, f"message.{parts}[1]"),
        ({parts: [way.part() | {"metadata": 3}]}, f"message.{parts}[0].metadata"),
        ({"metadata": []}, "message.metadata"),
        ({"contextId": {"a": 1}}, "message.contextId"),
        ({"taskId": [1]}, "message.taskId"),
    ]
    for members, path in wrong:
        assert path in named(await ask(server, way, way.body(**members))), members


@SPOKEN
async def test_an_unknown_enum_value_is_named_and_not_dropped(server: Whole, way: Way) -> None:
    assert "king" in named(await ask(server, way, way.body(role="king")))
    if not way.rpc and not way.kinds and way.parts == "parts" and "acme" not in way.path:
        answer = await server.ask(request("GET", "/tasks?status=RUNNING"))
        assert "RUNNING" in named(refused(answer))


@SPOKEN
async def test_a_message_without_parts(server: Whole, way: Way) -> None:
    for parts in (MISSING, [], None):
        assert f"message.{way.parts}" in named(await ask(server, way, way.body(**{way.parts: parts}))), parts


@SPOKEN
async def test_no_message_or_an_empty_one(server: Whole, way: Way) -> None:
    for params in ({}, {"message": None}, {"message": {}}):
        assert "message" in named(await ask(server, way, json.dumps(way.around(params)).encode())), params


@SPOKEN
async def test_a_part_with_two_contents_or_none(server: Whole, way: Way) -> None:
    both = way.part() | ({"file": {"uri": "https://a.example"}, "data": {}} if way.kinds else {"data": {"a": 1}})
    assert f"message.{way.parts}[0]" in named(await ask(server, way, way.body(**{way.parts: [both]})))
    for nothing in ({}, {"kind": "text"}, {"metadata": {"a": 1}}):
        error = await ask(server, way, way.body(**{way.parts: [way.part(), nothing]}))
        assert f"message.{way.parts}[1]" in named(error), nothing


@pytest.mark.proves("D-2-7")
@SPOKEN
async def test_too_many_parts(server: Whole, way: Way) -> None:
    error = await ask(server, way, way.body(**{way.parts: [way.part()] * 6}))
    assert "at most 5" in named(error)


@pytest.mark.proves("S-1-6")
@SPOKEN
async def test_an_id_that_would_break_lines_or_is_too_long(server: Whole, way: Way) -> None:
    for name in ("messageId", "contextId", "taskId"):
        for id in ("a\r\nevent: x", "a\x00b", "a\u2028b", "x" * 257):
            error = await ask(server, way, way.body(**{name: id}))
            assert f"message.{name}" in named(error) and "event: x" not in named(error), (name, id)


@pytest.mark.proves("S-6-13")
@SPOKEN
async def test_a_number_nothing_can_hold(server: Whole, way: Way) -> None:
    await ask(server, way, way.body(metadata={"n": "HUGE"}).replace(b'"HUGE"', b"1e400"))


# --- text that is none


@SPOKEN
async def test_invalid_utf_8(server: Whole, way: Way) -> None:
    for text in (b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"):
        await ask(server, way, way.body().replace(b'"hi"', b'"' + text + b'"'))


@SPOKEN
async def test_lone_surrogates_and_bare_control_characters(server: Whole, way: Way) -> None:
    for text in (rb"\ud800", rb"\udc00", rb"\ud800\ud800", b"\x00", b"a\nb"):
        await ask(server, way, way.body().replace(b'"hi"', b'"' + text + b'"'))


# --- too much


@pytest.mark.proves("S-6-12")
@SPOKEN
async def test_a_depth_bomb(server: Whole, way: Way) -> None:
    closed = way.body(metadata={"n": "BOMB"}).replace(b'"BOMB"', b"[" * 50_000 + b"]" * 50_000)
    for bomb in (b"[" * 50_000, b'{"a":' * 50_000, closed):
        error = await ask(server, way, bomb)
        assert "deeper" in named(error) or error == {"code": -32600, "message": "Invalid request"}  # that page's words


@pytest.mark.proves("D-2-8")
@SPOKEN
async def test_a_body_over_eight_mebibytes(server: Whole, way: Way) -> None:
    answer = await server.ask(way.request(way.body(metadata={"pad": "x" * (8 << 20)})))
    assert answer.status == 413
    refused(answer)


@SPOKEN
async def test_headers_that_drip_in(way: Way) -> None:
    async with whole(agent(), head_timeout="100ms") as server:
        line = await server.dial()
        answering = asyncio.create_task(line.answer())
        await drip(line, way.request(way.body()).partition(b"\r\n\r\n")[0], answering)
        answer = await answering
        assert answer.status == 408 and b"Traceback" not in answer.body
        assert await server.tasks() == []


# --- from whom no request is taken


@pytest.mark.proves("S-9-3")
@SPOKEN
async def test_another_media_type(server: Whole, way: Way) -> None:
    for media in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        await ask(server, way, way.body(), **{"Content-Type": media})


STRANGERS: tuple[dict[str, str], ...] = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example:8000"},
    {"Host": ""},
    {"X-Forwarded-For": "1.2.3.4"},
    {"Forwarded": "for=1.2.3.4;host=evil.example"},
)


@pytest.mark.proves("S-9-1", "S-9-2", "S-9-4", "S-9-5")
@SPOKEN
async def test_a_foreign_page_a_rebound_name_and_an_unknown_proxy(server: Whole, way: Way) -> None:
    for headers in STRANGERS:
        answer = await server.ask(way.request(way.body(), **headers))
        assert answer.status == 403, headers
        refused(answer)
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.proves("S-9-4")
@SPOKEN
async def test_what_may_be_done_is_told_and_does_nothing(server: Whole, way: Way) -> None:
    page = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert (await server.ask(request("OPTIONS", way.path, headers=page))).status == 403
    answer = await server.ask(request("OPTIONS", way.path))
    assert answer.status == 204 and "POST" in answer.headers["allow"]
    for verb in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
        answer = await server.ask(request(verb, way.path), bodiless=verb == "HEAD")
        assert answer.status == 405 and "POST" in answer.headers["allow"], verb
        if verb != "HEAD":
            refused(answer)


# --- what is unusual and no misuse


NUMBERS = [
    "12345678901234567",
    "-12345678901234567",
    "9007199254740993",
    "18446744073709551615",
    "0.1",
    "1.0",
    "-0.0",
    "1e22",
    "5e-324",
    "1.7976931348623157e308",
    "3.141592653589793",
]


class TestKept:
    """Served, and nothing of it is changed on the way."""

    @pytest.fixture
    async def server(self) -> AsyncIterator[Whole]:
        async with whole(agent()) as served:
            yield served

    @pytest.mark.proves("S-6-13")
    @pytest.mark.parametrize("way", [WAYS["JSON-RPC 1.0"], WAYS["HTTP+JSON 1.0"]], ids=["JSONRPC", "HTTP+JSON"])
    @pytest.mark.parametrize("number", NUMBERS)
    async def test_numbers(self, server: Whole, way: Way, number: str) -> None:
        body = way.body(parts=[{"data": {"n": "NUMBER"}}]).replace(b'"NUMBER"', number.encode())
        answer = await server.ask(way.request(body))
        assert f'"n":{number}'.encode() in answer.body.replace(b" ", b"").replace(b"e+", b"e")

    @pytest.mark.parametrize("way", [WAYS["JSON-RPC 1.0"], WAYS["HTTP+JSON 1.0"]], ids=["JSONRPC", "HTTP+JSON"])
    @pytest.mark.parametrize("text", ["a\x00b", "\U0001f600", "\u2028\r\n\x7f", "é" * 1_000, " "])
    async def test_characters(self, server: Whole, way: Way, text: str) -> None:
        await server.ask(way.request(way.body(parts=[{"text": text}])))
        (task,) = await server.tasks()
        assert task["artifacts"][0]["parts"] == [{"text": text}] == task["history"][0]["parts"]

    async def test_a_request_without_an_id_is_answered_with_none(self, server: Whole) -> None:
        """Strictly a notification; other servers answer it too, and whoever forgot the id wants to see why."""
        way = WAYS["JSON-RPC 1.0"]
        answer = await server.ask(way.request(way.body().replace(b'"id": "r", ', b"")))
        assert answer.json()["id"] is None and answer.json()["result"]["task"]

    @pytest.mark.parametrize("way", [way for way in WAYS.values() if not way.rpc and "stream" not in way.path])
    async def test_unknown_query_parameters_and_members(self, server: Whole, way: Way) -> None:
        odd = way._replace(path=f"{way.path}?utm_source=x&&=&%00=%ff")
        answer = await server.ask(odd.request(way.body(nobodyKnows={"a": 1})))
        assert answer.status == 200 and "task" in answer.json()
