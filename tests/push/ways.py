"""Every way to have a task and set a webhook for it: one per dialect and binding, and what its bodies look like."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2

JSON = dict[str, Any]
_numbers = itertools.count(1)


async def rpc(client: httpx2.AsyncClient, path: str, method: str, params: JSON) -> Any:
    """The result of a call that succeeds."""
    request = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}
    answer = (await client.post(path, json=request)).json()
    assert "result" in answer, answer
    return answer["result"]


async def post(client: httpx2.AsyncClient, path: str, body: JSON) -> Any:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def said(text: str, **members: Any) -> JSON:
    return {"messageId": f"m{next(_numbers)}", "role": "user", "parts": [{"kind": "text", "text": text}], **members}


def said_10(text: str, **members: Any) -> JSON:
    return {"messageId": f"m{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": text}], **members}


Send = Callable[[httpx2.AsyncClient, str], Awaitable[str]]
Set = Callable[[httpx2.AsyncClient, str, JSON], Awaitable[Any]]


class Way(NamedTuple):
    """`send` has a task done and answers its id; `set` registers a webhook, given as 0.3 spells one. `shape` is what
    the body about the end is known by, and says its state and the text of what was made."""

    name: str
    send: Send
    set: Set
    shape: Callable[[JSON], tuple[str, str]]
    media_type: str = "application/json"


def text_of(artifacts: list[JSON]) -> str:
    return "".join(part.get("text", "") for artifact in artifacts for part in artifact["parts"])


def task_10(body: JSON) -> tuple[str, str]:
    assert set(body) == {"task"}
    return body["task"]["status"]["state"], text_of(body["task"]["artifacts"])


def task_03(body: JSON) -> tuple[str, str]:
    assert body["kind"] == "task" and body["contextId"]
    assert all(part["kind"] for artifact in body["artifacts"] for part in artifact["parts"])
    return body["status"]["state"], text_of(body["artifacts"])


def task_01(body: JSON) -> tuple[str, str]:
    assert body["sessionId"] == "s-1" and "kind" not in body
    assert all(part["type"] for artifact in body["artifacts"] for part in artifact["parts"])
    return body["status"]["state"], text_of(body["artifacts"])


def event_of_simple(body: JSON) -> tuple[str, str]:
    assert body["type"] == "TaskStatusUpdateEvent" and body["final"] is True and "kind" not in body
    return body["status"]["state"], text_of(body["artifacts"])


def event_of_proto(body: JSON) -> tuple[str, str]:
    assert body["kind"] == "status-update" and body["final"] is True
    assert (body["artifact"]["append"], body["artifact"]["lastChunk"]) == (False, True)
    return body["status"]["state"], text_of([body["artifact"]])


def _sending(path: str, method: str = "message/send") -> Send:
    async def send(client: httpx2.AsyncClient, text: str) -> str:
        return (await rpc(client, path, method, {"message": said(text)}))["id"]

    return send


def _setting(path: str) -> Set:
    async def set_(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
        params = {"taskId": task, "pushNotificationConfig": config}
        return await rpc(client, path, "tasks/pushNotificationConfig/set", params)

    return set_


async def send_10(client: httpx2.AsyncClient, text: str) -> str:
    return (await rpc(client, "/", "SendMessage", {"message": said_10(text)}))["task"]["id"]


def flat(task: str, config: JSON) -> JSON:
    """As 1.0 spells it."""
    authentication = config.get("authentication")
    if authentication:
        first, credentials = authentication["schemes"][0], authentication["credentials"]
        config = config | {"authentication": {"scheme": first, "credentials": credentials}}
    return {"taskId": task, **config}


async def set_10(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    return await rpc(client, "/", "CreateTaskPushNotificationConfig", flat(task, config))


async def send_10_http(client: httpx2.AsyncClient, text: str) -> str:
    return (await post(client, "/message:send", {"message": said_10(text)}))["task"]["id"]


async def set_10_http(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    return await post(client, f"/tasks/{task}/pushNotificationConfigs", flat(task, config))


async def send_03_http(client: httpx2.AsyncClient, text: str) -> str:
    body = {"message": said_10(text, content=[{"text": text}]), "configuration": {"blocking": True}}
    return (await post(client, "/v1/message:send", body))["task"]["id"]


async def set_03_http(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    path = f"tasks/{task}/pushNotificationConfigs"
    inside = {"name": f"{path}/h", "pushNotificationConfig": config}
    return await post(client, f"/v1/{path}", {"parent": f"tasks/{task}", "configId": "h", "config": inside})


async def send_01(client: httpx2.AsyncClient, text: str) -> str:
    message = {"role": "user", "parts": [{"type": "text", "text": text}]}
    params = {"id": f"t{next(_numbers)}", "sessionId": "s-1", "message": message}
    return (await rpc(client, "/", "tasks/send", params))["id"]


async def set_01(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    return await rpc(client, "/", "tasks/pushNotification/set", {"id": task, "pushNotificationConfig": config})


async def set_simple(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    own: JSON = {"webhookUrl": config["url"]}
    if authentication := config.get("authentication"):
        first, credentials = authentication["schemes"][0], authentication["credentials"]
        own["authenticationInfo"] = {"scheme": first.lower(), "value": credentials}
    return await rpc(client, "/", "tasks/pushNotification/set", {"id": task, "pushNotificationConfig": own})


async def send_cortex(client: httpx2.AsyncClient, text: str) -> str:
    return (await rpc(client, "/a2a", "SendMessage", {"message": said_10(text)}))["id"]


async def set_cortex(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    return await rpc(client, "/a2a", "CreateTaskPushNotificationConfig", flat(task, config))


async def set_proto_http(client: httpx2.AsyncClient, task: str, config: JSON) -> Any:
    return await post(client, f"/a2a/tasks/{task}/pushNotificationConfig", config)


A2A_JSON = "application/a2a+json"
WAYS = (
    Way("1.0", send_10, set_10, task_10, A2A_JSON),
    Way("1.0-http", send_10_http, set_10_http, task_10, A2A_JSON),
    Way("0.3", _sending("/"), _setting("/"), task_03),
    Way("0.3-http", send_03_http, set_03_http, task_03),
    Way("0.1", send_01, set_01, task_01),
    Way("simple", _sending("/", "tasks/send"), set_simple, event_of_simple),
    Way("coding", _sending("/a2a/jsonrpc"), _setting("/a2a/jsonrpc"), task_03),
    Way("cortex", send_cortex, set_cortex, task_10, A2A_JSON),
    Way("proto", _sending("/a2a"), _setting("/a2a"), event_of_proto),
    Way("proto-http", _sending("/a2a"), set_proto_http, event_of_proto),
    Way("a2x", _sending("/api/a2a"), _setting("/api/a2a"), task_03),
)
WAYS_BY_NAME = {way.name: way for way in WAYS}
COMPLETED = {
    "1.0": "TASK_STATE_COMPLETED",
    "1.0-http": "TASK_STATE_COMPLETED",
    "cortex": "TASK_STATE_COMPLETED",
}
