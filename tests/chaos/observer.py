"""A client that believes only what it was sent, and writes it all down."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

JSON = dict[str, Any]
ENDED = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
PARKED = {"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"}

_numbers = itertools.count(1)


def message(text: str, skill: str, **members: str) -> JSON:
    return {
        "messageId": f"m{next(_numbers)}",
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        "metadata": {"skill": skill},
        **members,
    }


def body(method: str, params: JSON) -> JSON:
    return {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}


async def rpc(client: httpx2.AsyncClient, method: str, params: JSON) -> JSON:
    answer = await client.post("/", json=body(method, params))
    return answer.json()


@dataclass
class Witness:
    """What one stream delivered so far: frames by number, the artifact built from them, the last cursor."""

    skill: str
    task: str = ""
    cursor: str = ""
    seen: list[int] = field(default_factory=list[int])
    text: str = ""
    state: str = ""
    done: bool = False

    def take(self, id: str, item: JSON) -> None:
        if id:
            uid, _, number = id.rpartition(".")
            assert uid and (not self.seen or int(number) > self.seen[-1]), f"{id} came after {self.seen[-1:]}"
            self.seen.append(int(number))
            self.cursor = id
        if "task" in item:
            self.task = item["task"]["id"]
            self.state = item["task"]["status"]["state"]
            self.text = text_of(item["task"])
        elif "artifactUpdate" in item:
            update = item["artifactUpdate"]
            piece = "".join(part.get("text", "") for part in update["artifact"]["parts"])
            self.text = self.text + piece if update.get("append") else piece
        else:
            self.state = item["statusUpdate"]["status"]["state"]
        self.done = self.state in ENDED

    async def watch(self, client: httpx2.AsyncClient) -> None:
        """Stream until the end or until the connection breaks. Continues from the cursor when there is one."""
        headers = {"Accept": "text/event-stream"}
        if self.cursor:
            headers["Last-Event-ID"] = self.cursor
            request = body("SubscribeToTask", {"id": self.task})
        else:
            request = body("SendStreamingMessage", {"message": message("go", self.skill)})
        try:
            async with client.stream("POST", "/", json=request, headers=headers) as answer:
                async for id, item in frames(answer):
                    self.take(id, item)
        except (httpx2.TransportError, httpx2.StreamError):
            return


async def frames(answer: httpx2.Response) -> AsyncIterator[tuple[str, JSON]]:
    """Complete frames only: what was cut off in the middle was not delivered."""
    id = ""
    data = ""
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            id = line[4:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line and data:
            content = json.loads(data)
            assert "result" in content, content
            yield id, content["result"]
            id = data = ""


def text_of(task: JSON) -> str:
    return "".join(part.get("text", "") for artifact in task.get("artifacts", []) for part in artifact.get("parts", []))


@dataclass
class Ledger:
    """Everything the server acknowledged to one population of clients."""

    witnesses: list[Witness] = field(default_factory=list[Witness])
    echoed: dict[str, str] = field(default_factory=dict[str, str])  # task → the text it completed with
    accepted: list[str] = field(default_factory=list[str])
    asked: dict[str, bool] = field(default_factory=dict[str, bool])  # task → whether its answer was acknowledged

    async def stream(self, client: httpx2.AsyncClient, skill: str) -> None:
        while True:
            witness = Witness(skill)
            self.witnesses.append(witness)
            await witness.watch(client)
            if not witness.done:
                return

    async def echo(self, client: httpx2.AsyncClient) -> None:
        for number in itertools.count():
            try:
                said = message(f"echo {number}", "echo")
                answer = await rpc(client, "SendMessage", {"message": said})
            except (httpx2.TransportError, httpx2.StreamError):
                return
            task = answer["result"]["task"]
            assert task["status"]["state"] in ENDED
            self.echoed[task["id"]] = text_of(task)

    async def accept(self, client: httpx2.AsyncClient) -> None:
        while True:
            try:
                params = {"message": message("x", "echo"), "configuration": {"returnImmediately": True}}
                answer = await rpc(client, "SendMessage", params)
            except (httpx2.TransportError, httpx2.StreamError):
                return
            self.accepted.append(answer["result"]["task"]["id"])
            await asyncio.sleep(0.005)

    async def ask(self, client: httpx2.AsyncClient) -> None:
        while True:
            try:
                answer = await rpc(client, "SendMessage", {"message": message("?", "ask")})
                task = answer["result"]["task"]
                assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
                self.asked[task["id"]] = False
                if len(self.asked) % 2:
                    await rpc(client, "SendMessage", {"message": message("this", "ask", taskId=task["id"])})
                    self.asked[task["id"]] = True
            except (httpx2.TransportError, httpx2.StreamError):
                return
            await asyncio.sleep(0.005)

    async def load(self, client: httpx2.AsyncClient) -> None:
        """Run everybody until the server is gone."""
        streams = [self.stream(client, skill) for skill in ("stream", "again") for _ in range(6)]
        echoes = [self.echo(client) for _ in range(4)]
        await asyncio.gather(*streams, *echoes, self.accept(client), self.ask(client))
