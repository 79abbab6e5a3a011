"""Drives an agent with the Python client of protocol 0.3, a2a-sdk 0.3.x.

python py03.py BASE_URL BINDING [PATH]      BINDING: JSONRPC | HTTP+JSON; PATH: keep to the interface there
"""

import os
import sys
import uuid
from typing import Any

import httpx
import session
from a2a import types as a2a
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.utils import signing
from jwt import PyJWK

base, binding, path = [*sys.argv[1:], ""][:3]
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
        if path:
            found.url, found.preferred_transport, found.additional_interfaces = base + path, binding, None
        config = ClientConfig(
            streaming=streaming, httpx_client=http, supported_transports=[binding], use_client_preference=True
        )
        clients[key] = ClientFactory(config).create(found, interceptors=[AuthInterceptor(Credential())])
    return clients[key]


def read_part(part: a2a.Part) -> dict[str, Any]:
    root = part.root
    if isinstance(root, a2a.TextPart):
        return {"text": root.text}
    if isinstance(root, a2a.DataPart):
        return {"data": root.data}
    file = root.file
    body = {"raw": file.bytes} if isinstance(file, a2a.FileWithBytes) else {"url": file.uri}
    return body | {key: each for key, each in (("media_type", file.mime_type), ("filename", file.name)) if each}


def make_part(plain: dict[str, Any]) -> a2a.Part:
    named = {"mime_type": plain.get("media_type"), "name": plain.get("filename")}
    if "text" in plain:
        root: Any = a2a.TextPart(text=plain["text"])
    elif "raw" in plain:
        root = a2a.FilePart(file=a2a.FileWithBytes(bytes=plain["raw"], **named))
    elif "url" in plain:
        root = a2a.FilePart(file=a2a.FileWithUri(uri=plain["url"], **named))
    else:
        root = a2a.DataPart(data=plain["data"])
    return a2a.Part(root=root)


def parts_of(value: Any) -> list[dict[str, Any]]:
    return [read_part(part) for part in value.parts] if value is not None else []


def task_of(value: a2a.Task) -> dict[str, Any]:
    return {
        "kind": "task",
        "task": value.id,
        "context": value.context_id,
        "state": value.status.state.value,
        "said": parts_of(value.status.message),
        "artifacts": [{"name": each.name, "parts": parts_of(each)} for each in value.artifacts or []],
        "history": [{"role": each.role.value, "parts": parts_of(each)} for each in value.history or []],
    }


def event(item: Any) -> dict[str, Any]:
    if isinstance(item, a2a.Message):
        return {"kind": "message", "task": item.task_id or "", "parts": parts_of(item)}
    whole, update = item
    if update is None:
        return task_of(whole)
    if isinstance(update, a2a.TaskStatusUpdateEvent):
        return {
            "kind": "status",
            "task": update.task_id,
            "state": update.status.state.value,
            "said": parts_of(update.status.message),
            "final": update.final,
        }
    return {
        "kind": "artifact",
        "task": update.task_id,
        "artifact": update.artifact.artifact_id,
        "parts": parts_of(update.artifact),
        "append": bool(update.append),
        "last": bool(update.last_chunk),
    }


def message(plain: list[dict[str, Any]], task: str, context: str) -> a2a.Message:
    return a2a.Message(
        message_id=str(uuid.uuid4()),
        role=a2a.Role.user,
        parts=[make_part(each) for each in plain],
        task_id=task or None,
        context_id=context or None,
    )


async def card() -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=25) as http:
        found = await A2ACardResolver(http, base).get_agent_card()
    return {
        "name": found.name,
        "version": found.version,
        "streaming": bool(found.capabilities.streaming),
        "skills": [skill.id for skill in found.skills],
        "interfaces": [[found.preferred_transport, found.protocol_version]]
        + [[each.transport, found.protocol_version] for each in found.additional_interfaces or []],
    }


async def send(parts: list[dict[str, Any]], task: str = "", context: str = "", wait: bool = True) -> Any:
    items = (await client(streaming=False)).send_message(
        message(parts, task, context), configuration=a2a.MessageSendConfiguration(blocking=wait)
    )
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

    items = (await client()).send_message(message(parts, task, context))
    return await session.gather(items, event, react)


async def resubscribe(task: str) -> Any:
    return await session.gather((await client()).resubscribe(a2a.TaskIdParams(id=task)), event)


async def get(task: str, history: int | None = None) -> Any:
    return task_of(await (await client()).get_task(a2a.TaskQueryParams(id=task, history_length=history)))


async def cancel(task: str) -> Any:
    return task_of(await (await client()).cancel_task(a2a.TaskIdParams(id=task)))


def code_of(error: Exception) -> int | None:
    if isinstance(known := getattr(error, "error", None), Exception | a2a.A2ABaseModel):
        return getattr(known, "code", None)
    return getattr(error, "status_code", None)


def head(key: dict[str, Any], jku: str) -> dict[str, Any]:
    return {"alg": key["alg"], "kid": key["kid"], "typ": "JOSE", "jku": jku or None}


async def sign(card: dict[str, Any], key: dict[str, Any], jku: str = "") -> Any:
    sign_it = signing.create_agent_card_signer(PyJWK(key), head(key, jku))
    return sign_it(a2a.AgentCard.model_validate(card)).model_dump(mode="json", by_alias=True, exclude_none=True)


async def verify(card: dict[str, Any], keys: list[dict[str, Any]]) -> Any:
    known = {key["kid"]: PyJWK(key) for key in keys}
    check = signing.create_signature_verifier(lambda kid, jku: known[kid or ""], ["ES256", "ES384", "RS256"])
    check(a2a.AgentCard.model_validate(card))
    return True


def config_of(value: a2a.TaskPushNotificationConfig) -> dict[str, Any]:
    config = value.push_notification_config
    secret = config.token or (config.authentication.credentials if config.authentication else "")
    return {"task": value.task_id, "id": config.id, "url": config.url, "secret": secret or ""}


async def hook(task: str, url: str, id: str, token: str) -> Any:
    config = a2a.PushNotificationConfig(id=id, url=url, token=token)
    wanted = a2a.TaskPushNotificationConfig(task_id=task, push_notification_config=config)
    return config_of(await (await client()).set_task_callback(wanted))


async def hooked(task: str, id: str) -> Any:
    wanted = a2a.GetTaskPushNotificationConfigParams(id=task, push_notification_config_id=id)
    return config_of(await (await client()).get_task_callback(wanted))


session.run(
    {
        "card": card,
        "send": send,
        "stream": stream,
        "resubscribe": resubscribe,
        "get": get,
        "cancel": cancel,
        "hook": hook,
        "hooked": hooked,
        "sign": sign,
        "verify": verify,
    },
    code_of,
)
