"""/openapi.json is true: what the whole server really answers is what is described, and what is required is."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.testing.sse import Frames
from tests.protocol.stage import Stage
from tests.server.rig import Answer, request
from tests.server.whole import Whole, whole

pytestmark = pytest.mark.anyio

V10 = {"A2A-Version": "1.0"}
PARTS = [
    {"text": "echo", "metadata": {"a": 1}},
    {"raw": "AP8=", "filename": "x", "mediaType": "a/b"},
    {"url": "https://a.example"},
    {"data": {"a": [1, None]}},
]
KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(value: Any, schema: Any, schemas: dict[str, Any], at: str = "") -> list[str]:
    """Why a value is not what a schema says; members it does not name count too."""
    if "$ref" in schema:
        return problems(value, schemas[schema["$ref"].rpartition("/")[2]], schemas, at)
    if "anyOf" in schema:
        found = [problems(value, each, schemas, at) for each in schema["anyOf"]]
        return min(found, key=len)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at} is {value!r}"]
    if "type" not in schema:
        return []
    if not isinstance(value, KINDS[schema["type"]]):
        return [f"{at} is no {schema['type']} but {value!r}"]
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return [f"{at} is empty"]
        return [each for n, one in enumerate(value) for each in problems(one, schema["items"], schemas, f"{at}[{n}]")]
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return [f"{at} is empty"]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    members = schema["properties"]
    missing = [f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value]
    unnamed = [f"{at}.{name} is not described" for name in value if name not in members]
    inside = (problems(value[name], members[name], schemas, f"{at}.{name}") for name in value if name in members)
    return missing + unnamed + [each for found in inside for each in found]


class Described:
    def __init__(self, server: Whole, page: dict[str, Any]) -> None:
        self.server, self.paths, self.schemas = server, page["paths"], page["components"]["schemas"]

    async def ask(self, verb: str, path: str, body: Any = None, *, of: str = "") -> Answer:
        """Ask, and hold the answer to what `of` (a path template) says."""
        data = b"" if body is None else json.dumps(body).encode()
        answer = await self.server.ask(request(verb, path, data, V10))
        told = self.paths[of or path.partition("?")[0]][verb.lower()]["responses"]
        content = told.get(str(answer.status), told.get("default"))["content"]
        media = answer.headers["content-type"].partition(";")[0]
        assert media in content, (path, media)
        if media == "application/json":
            assert not problems(answer.json(), content[media]["schema"], self.schemas, path)
        return answer

    async def rpc(self, method: str, params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return (await self.ask("POST", "/", body)).json()


@pytest.fixture
async def described() -> AsyncIterator[Described]:
    async with whole(Stage().agent) as server:
        yield Described(server, (await server.ask(request("GET", "/openapi.json"))).json())


def saying(text: str, *parts: Any, **members: Any) -> dict[str, Any]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}, *parts], "metadata": {"k": "v"}}
    return {"message": message | members, "configuration": {"historyLength": 5}, "metadata": {"a": 1}}


async def test_what_is_answered_is_what_is_described(described: Described) -> None:
    ask = described.ask
    for text in ("echo", "ask", "fail", "direct", "login", "count 3"):
        await ask("POST", "/message:send", saying(text, *PARTS))
    task = (await ask("POST", "/message:send", saying("ask"))).json()["task"]
    id, one = task["id"], "/tasks/{id}"
    await ask("GET", f"/tasks/{id}", of=one)
    await ask("GET", "/tasks?includeArtifacts=true&pageSize=2")
    await ask("GET", "/tasks?contextId=nobody")
    await ask("POST", f"/tasks/{id}:cancel", {}, of="/tasks/{id}:cancel")
    for path in ("/healthz", "/readyz", "/openapi.json", "/.well-known/agent-card.json"):
        await ask("GET", path)
    for verb, path, of in (
        ("GET", "/tasks/nobody", one),
        ("POST", "/tasks/nobody:cancel", "/tasks/{id}:cancel"),
        ("GET", "/tasks?pageSize=0", "/tasks"),
        ("GET", "/tasks?status=NONE", "/tasks"),
        ("GET", "/extendedAgentCard", ""),
        ("POST", f"/tasks/{id}:subscribe", "/tasks/{id}:subscribe"),
    ):
        answer = await ask(verb, path, {} if verb == "POST" else None, of=of)
        assert answer.status >= 400
    assert (await ask("POST", "/message:send", {})).status == 400


async def test_so_is_what_json_rpc_answers(described: Described) -> None:
    task = (await described.rpc("SendMessage", saying("ask")))["result"]["task"]
    assert not problems(task, described.schemas["Task"], described.schemas)
    for method, params in (("GetTask", {"id": task["id"]}), ("ListTasks", {}), ("CancelTask", {"id": task["id"]})):
        assert "result" in await described.rpc(method, params)
    for method, params in (("GetTask", {"id": "nobody"}), ("SendMessage", {}), ("NoSuch", {}), ("GetTask", [])):
        assert "error" in await described.rpc(method, params)


async def test_so_are_the_events_of_a_stream(described: Described) -> None:
    item = described.paths["/message:stream"]["post"]["responses"]["200"]["content"]["text/event-stream"]["itemSchema"]
    seen = set[str]()
    for text in ("count 2", "ask", "fail", "direct"):
        answer = await described.ask("POST", "/message:stream", saying(text))
        for frame in Frames().feed(answer.body):
            event = json.loads(frame.data)
            assert not problems(event, item, described.schemas)
            seen |= event.keys()
    assert seen == set(described.schemas["StreamResponse"]["properties"])


async def test_what_is_required_is_and_nothing_else(described: Described) -> None:
    whole_message: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "echo"}]}
    assert sorted(described.schemas["Message"]["required"]) == sorted(whole_message)
    assert (await described.ask("POST", "/message:send", {"message": whole_message})).status == 200
    assert described.schemas["SendMessage"]["required"] == ["message"]
    for name in whole_message:
        for wrong in ({}, {name: type(whole_message[name])()}):
            message = {key: value for key, value in whole_message.items() if key != name} | wrong
            assert (await described.ask("POST", "/message:send", {"message": message})).status == 400


async def test_the_bounds_of_a_parameter_are_those_it_has(described: Described) -> None:
    parameters = {each["name"]: each["schema"] for each in described.paths["/tasks"]["get"]["parameters"]}
    low, high = parameters["pageSize"]["minimum"], parameters["pageSize"]["maximum"]
    for size, status in ((low - 1, 400), (low, 200), (high, 200), (high + 1, 400)):
        assert (await described.ask("GET", f"/tasks?pageSize={size}", of="/tasks")).status == status
    least = parameters["historyLength"]["minimum"]
    for length, status in ((least - 1, 400), (least, 200)):
        assert (await described.ask("GET", f"/tasks?historyLength={length}", of="/tasks")).status == status
