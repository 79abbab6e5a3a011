"""Drives an agent with the official Python client, a2a-sdk 1.x.

python py10.py BASE_URL BINDING [PATH]      BINDING: JSONRPC | HTTP+JSON, with "@0.3" behind it to use the 0.3
interface; PATH: keep to the interface there
"""

import base64
import os
import sys
import uuid
from typing import Any
from urllib.parse import urlsplit

import httpx
import session
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.types import a2a_pb2 as a2a
from a2a.utils import signing
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from jwt import PyJWK

base = sys.argv[1]
binding, _, version = sys.argv[2].partition("@")
path = "".join(sys.argv[3:])
clients: dict[str, Any] = {}


class Credential(CredentialService):
    """The one there is, by the name the card gives its scheme; where it goes is for the SDK to read from the card."""

    async def get_credentials(self, security_scheme_name: str, context: Any) -> str | None:
        scheme, _, value = os.environ.get("INTEROP_CREDENTIAL", "").partition(" ")
        return value if value and scheme == security_scheme_name else None


async def client(*, streaming: bool = True) -> Any:
    key = "streaming" if streaming else "waiting"
    if key not in clients:
        http = httpx.AsyncClient(timeout=25)
        found = await A2ACardResolver(http, base).get_agent_card()
        if version or path:
            kept = [
                each
                for each in found.supported_interfaces
                if each.protocol_version.startswith(version) and urlsplit(each.url).path.endswith(path)
            ]
            del found.supported_interfaces[:]
            found.supported_interfaces.extend(kept)
        config = ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding])
        clients[key] = ClientFactory(config).create(found, interceptors=[AuthInterceptor(Credential())])
    return clients[key]


def state(value: int) -> str:
    return a2a.TaskState.Name(value).removeprefix("TASK_STATE_").lower().replace("_", "-")


def read_part(part: a2a.Part) -> dict[str, Any]:
    kind = part.WhichOneof("content")
    value: Any = getattr(part, kind or "", None)
    if kind == "raw":
        value = base64.b64encode(value).decode()
    elif kind == "data":
        value = MessageToDict(value)
    return {kind or "nothing": value} | {
        key: each for key, each in (("media_type", part.media_type), ("filename", part.filename)) if each
    }


def make_part(plain: dict[str, Any]) -> a2a.Part:
    part = a2a.Part(media_type=plain.get("media_type", ""), filename=plain.get("filename", ""))
    if "text" in plain:
        part.text = plain["text"]
    elif "raw" in plain:
        part.raw = base64.b64decode(plain["raw"])
    elif "url" in plain:
        part.url = plain["url"]
    else:
        part.data.CopyFrom(ParseDict(plain["data"], Value()))
    return part


def parts_of(value: Any) -> list[dict[str, Any]]:
    return [read_part(part) for part in value.parts]


def task_of(value: a2a.Task) -> dict[str, Any]:
    return {
        "kind": "task",
        "task": value.id,
        "context": value.context_id,
        "state": state(value.status.state),
        "said": parts_of(value.status.message),
        "artifacts": [{"name": each.name, "parts": parts_of(each)} for each in value.artifacts],
        "history": [
            {"role": "user" if each.role == a2a.ROLE_USER else "agent", "parts": parts_of(each)}
            for each in value.history
        ],
    }


def event(item: a2a.StreamResponse) -> dict[str, Any]:
    kind = item.WhichOneof("payload")
    if kind == "task":
        return task_of(item.task)
    if kind == "message":
        return {"kind": "message", "task": item.message.task_id, "parts": parts_of(item.message)}
    if kind == "status_update":
        update = item.status_update
        return {
            "kind": "status",
            "task": update.task_id,
            "state": state(update.status.state),
            "said": parts_of(update.status.message),
        }
    update = item.artifact_update
    return {
        "kind": "artifact",
        "task": update.task_id,
        "artifact": update.artifact.artifact_id,
        "parts": parts_of(update.artifact),
        "append": update.append,
        "last": update.last_chunk,
    }


def request(plain: list[dict[str, Any]], task: str, context: str, wait: bool) -> a2a.SendMessageRequest:
    message = a2a.Message(
        message_id=str(uuid.uuid4()),
        role=a2a.ROLE_USER,
        parts=[make_part(each) for each in plain],
        task_id=task,
        context_id=context,
    )
    return a2a.SendMessageRequest(
        message=message, configuration=a2a.SendMessageConfiguration(return_immediately=not wait)
    )


async def card() -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=25) as http:
        found = await A2ACardResolver(http, base).get_agent_card()
    return {
        "name": found.name,
        "version": found.version,
        "streaming": found.capabilities.streaming,
        "skills": [skill.id for skill in found.skills],
        "interfaces": [[each.protocol_binding, each.protocol_version] for each in found.supported_interfaces],
    }


async def send(parts: list[dict[str, Any]], task: str = "", context: str = "", wait: bool = True) -> Any:
    items = (await client(streaming=False)).send_message(request(parts, task, context, wait))
    [only] = [event(item) async for item in items]
    return only


async def stream(
    parts: list[dict[str, Any]],
    task: str = "",
    context: str = "",
    cancel_it: bool = False,
    answer: list[dict[str, Any]] | None = None,
) -> Any:
    async def react(seen: dict[str, Any], first: bool) -> None:
        if cancel_it and first:
            await cancel(seen["task"])
        if answer and seen.get("state") == "input-required":
            await send(answer, seen["task"])

    items = (await client()).send_message(request(parts, task, context, True))
    return await session.gather(items, event, react)


async def resubscribe(task: str) -> Any:
    return await session.gather((await client()).subscribe(a2a.SubscribeToTaskRequest(id=task)), event)


async def get(task: str, history: int | None = None) -> Any:
    found = await (await client()).get_task(a2a.GetTaskRequest(id=task, history_length=history))
    return task_of(found)


async def cancel(task: str) -> Any:
    return task_of(await (await client()).cancel_task(a2a.CancelTaskRequest(id=task)))


async def listing(context: str, size: int | None = None, token: str = "", artifacts: bool = False) -> Any:
    page = await (await client()).list_tasks(
        a2a.ListTasksRequest(context_id=context, page_size=size, page_token=token, include_artifacts=artifacts)
    )
    return {"tasks": [task_of(each) for each in page.tasks], "next": page.next_page_token, "total": page.total_size}


def config_of(value: a2a.TaskPushNotificationConfig) -> dict[str, Any]:
    secret = value.token or value.authentication.credentials
    return {"task": value.task_id, "id": value.id, "url": value.url, "secret": secret}


async def hook(task: str, url: str, id: str, token: str) -> Any:
    wanted = a2a.TaskPushNotificationConfig(task_id=task, id=id, url=url, token=token)
    return config_of(await (await client()).create_task_push_notification_config(wanted))


async def hooked(task: str, id: str) -> Any:
    wanted = a2a.GetTaskPushNotificationConfigRequest(task_id=task, id=id)
    return config_of(await (await client()).get_task_push_notification_config(wanted))


async def hooks(task: str) -> Any:
    wanted = a2a.ListTaskPushNotificationConfigsRequest(task_id=task)
    found = await (await client()).list_task_push_notification_configs(wanted)
    return [config_of(each) for each in found.configs]


async def unhook(task: str, id: str) -> Any:
    wanted = a2a.DeleteTaskPushNotificationConfigRequest(task_id=task, id=id)
    await (await client()).delete_task_push_notification_config(wanted)


def head(key: dict[str, Any], jku: str) -> dict[str, Any]:
    return {"alg": key["alg"], "kid": key["kid"], "typ": "JOSE", "jku": jku or None}


async def sign(card: dict[str, Any], key: dict[str, Any], jku: str = "") -> Any:
    sign_it = signing.create_agent_card_signer(PyJWK(key), head(key, jku))
    return MessageToDict(sign_it(ParseDict(card, a2a.AgentCard(), ignore_unknown_fields=True)))


async def verify(card: dict[str, Any], keys: list[dict[str, Any]]) -> Any:
    known = {key["kid"]: PyJWK(key) for key in keys}
    check = signing.create_signature_verifier(lambda kid, jku: known[kid or ""], ["ES256", "ES384", "RS256"])
    check(ParseDict(card, a2a.AgentCard(), ignore_unknown_fields=True))
    return True


session.run(
    {
        "card": card,
        "send": send,
        "stream": stream,
        "resubscribe": resubscribe,
        "get": get,
        "cancel": cancel,
        "list": listing,
        "hook": hook,
        "hooked": hooked,
        "hooks": hooks,
        "unhook": unhook,
        "sign": sign,
        "verify": verify,
    },
    lambda error: None,
)
