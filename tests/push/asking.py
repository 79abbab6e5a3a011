"""How each dialect sets, gets, lists and deletes webhooks, over each binding, and how its answers read."""

from typing import Any, NamedTuple

import httpx2

from tests.push.ways import JSON, WAYS, Send, Set

NUMBERS: dict[int, str] = {-32001: "unknown", -32003: "unsupported", -32602: "invalid", -32000: "busy", -32603: "busy"}
REASONS = {"TASK_NOT_FOUND": "unknown", "PUSH_NOTIFICATION_NOT_SUPPORTED": "unsupported"}


class Refused(Exception):
    def __init__(self, why: str, body: str) -> None:
        super().__init__(f"{why}: {body}")
        self.why, self.body = why, body


class Shown(NamedTuple):
    """A webhook as an answer shows it. Dialects without ids have none to show."""

    task: str
    id: str
    url: str


class Asking:
    """`ids` says whether webhooks have ids here, `many` whether a task may have several of them, `null` whether asking
    for one that is not there is no error."""

    def __init__(self, client: httpx2.AsyncClient, name: str) -> None:
        self.client, self.name = client, name
        self.way = next(way for way in WAYS if way.name == name)
        self.said = ""  # everything that was answered

    @property
    def send(self) -> Send:
        return self.way.send

    @property
    def ids(self) -> bool:
        return self.name not in ("0.1", "simple")

    @property
    def null(self) -> bool:
        return self.name in ("0.1", "simple", "proto", "proto-http")

    async def task(self, text: str = "echo hello") -> str:
        return await self.way.send(self.client, text)

    # --- the operations

    async def set(self, task: str, config: JSON) -> Shown:
        setting: Set = self.way.set
        if self.name == "0.3-http" and "id" not in config:
            path = f"/v1/tasks/{task}/pushNotificationConfigs"
            return self.shown(await self.http("POST", path, {"config": {"pushNotificationConfig": config}}))
        keep = Kept(self.client)
        answer = await setting(keep, task, config)  # pyright: ignore[reportArgumentType]
        self.said += keep.said
        return self.shown(answer)

    async def get(self, task: str, id: str = "") -> Shown | None:
        name = self.name
        if name in ("1.0", "cortex"):
            found = await self.rpc("GetTaskPushNotificationConfig", {"taskId": task, "id": id})
        elif name in ("1.0-http", "0.3-http", "proto-http"):
            found = await self.http("GET", f"{self.path(task)}/{id}")
        elif name in ("0.1", "simple"):
            found = await self.rpc("tasks/pushNotification/get", {"id": task})
        else:
            params = {"id": task} | ({"pushNotificationConfigId": id} if id else {})
            found = await self.rpc("tasks/pushNotificationConfig/get", params)
        return self.shown(found) if found else None

    async def list(self, task: str) -> "list[Shown]":
        name = self.name
        if name in ("1.0", "cortex"):
            found = (await self.rpc("ListTaskPushNotificationConfigs", {"taskId": task})).get("configs", [])
        elif name in ("1.0-http", "0.3-http", "proto-http"):
            found = await self.http("GET", self.path(task))
            found = found if name == "proto-http" else found.get("configs", [])
        elif name == "simple":
            everything = await self.rpc("tasks/pushNotification/list", {})
            found = [each for each in everything if each["id"] == task]
        elif name == "0.1":  # has no such name: its neighbour's will do
            one = await self.get(task)
            return [one] if one else []
        else:
            found = await self.rpc("tasks/pushNotificationConfig/list", {"id": task})
        return [self.shown(each) for each in found]

    async def delete(self, task: str, id: str = "") -> None:
        name = self.name
        if name in ("1.0", "cortex"):
            await self.rpc("DeleteTaskPushNotificationConfig", {"taskId": task, "id": id})
        elif name in ("1.0-http", "0.3-http", "proto-http"):
            assert await self.http("DELETE", f"{self.path(task)}/{id}") == {}
        elif name in ("0.1", "simple"):
            assert await self.rpc("tasks/pushNotification/delete", {"id": task}) is None
        else:
            params = {"id": task} | ({"pushNotificationConfigId": id} if id else {})
            assert await self.rpc("tasks/pushNotificationConfig/delete", params) is None

    # --- spelling

    def path(self, task: str) -> str:
        start = {"1.0-http": "", "0.3-http": "/v1", "proto-http": "/a2a"}[self.name]
        return f"{start}/tasks/{task}/pushNotificationConfig{'' if self.name == 'proto-http' else 's'}"

    @property
    def mount(self) -> str:
        return {"coding": "/a2a/jsonrpc", "cortex": "/a2a", "proto": "/a2a", "a2x": "/api/a2a"}.get(self.name, "/")

    async def rpc(self, method: str, params: JSON) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await self.client.post(self.mount, json=body)
        self.said += answer.text
        found = answer.json()
        if "error" in found:
            raise Refused(NUMBERS.get(found["error"]["code"], str(found["error"]["code"])), answer.text)
        return found["result"]

    async def http(self, verb: str, path: str, body: JSON | None = None) -> Any:
        answer = await self.client.request(verb, path, json=body)
        self.said += answer.text
        if not answer.is_success:
            raise Refused(reason(answer), answer.text)
        return answer.json()

    def shown(self, found: JSON) -> Shown:
        name = self.name
        if name in ("1.0", "1.0-http", "cortex"):
            assert found.keys() <= {"taskId", "id", "url", "authentication", "tenant"}
            return Shown(found["taskId"], found["id"], found["url"])
        inner = found["pushNotificationConfig"]
        if name == "0.3-http":
            assert found["name"] == f"tasks/{found['name'].split('/')[1]}/pushNotificationConfigs/{inner['id']}"
            return Shown(found["name"].split("/")[1], inner["id"], inner["url"])
        if name == "simple":
            assert found.keys() == {"id", "pushNotificationConfig"}
            assert inner.keys() <= {"webhookUrl", "authenticationInfo", "eventTypes"}
            return Shown(found["id"], "", inner["webhookUrl"])
        if name == "0.1":
            assert found.keys() == {"id", "pushNotificationConfig"}
            assert inner.keys() <= {"url", "authentication"}
            return Shown(found["id"], "", inner["url"])
        assert found.keys() == {"taskId", "pushNotificationConfig"}
        assert inner.keys() <= {"id", "url", "authentication"}
        return Shown(found["taskId"], inner["id"], inner["url"])


class Kept:
    """A client that remembers what it was answered, and tells errors from the rest."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self.said = ""

    async def post(self, path: str, json: JSON) -> httpx2.Response:
        answer = await self._client.post(path, json=json)
        self.said += answer.text
        if not answer.is_success:
            raise Refused(reason(answer), answer.text)
        found = answer.json()
        if "error" in found:
            raise Refused(NUMBERS.get(found["error"]["code"], str(found["error"]["code"])), answer.text)
        return answer


def reason(answer: httpx2.Response) -> str:
    """Why a request over HTTP+JSON was refused, whichever version says so."""
    found = answer.json()
    if "error" not in found:
        return NUMBERS.get(found["code"], str(found["code"]))
    reasons = [each["reason"] for each in found["error"].get("details", ()) if "reason" in each]
    plain = {400: "invalid", 404: "unknown", 429: "busy"}.get(answer.status_code, str(answer.status_code))
    return next((REASONS[each] for each in reasons if each in REASONS), plain)
