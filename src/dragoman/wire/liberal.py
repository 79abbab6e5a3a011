"""The reader of the seed mounts: whatever any of their clients writes, read as what it plainly means.

Parts are known by their members, roles by either spelling; `messageId`, `role` and `kind` may be missing; the task and
the context may be named in the message or beside it. What contradicts itself is refused. No official mount reads so.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import (
    CancelTask,
    Configuration,
    CreatePush,
    DeletePush,
    GetCard,
    GetPush,
    GetTask,
    ListPush,
    ListTasks,
    Operation,
    PushConfig,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
)
from dragoman.wire.reading import (
    Field,
    Read,
    Sheet,
    anything,
    base64,
    choice,
    finish,
    flag,
    ident,
    instant,
    integer,
    many,
    mapping,
    one_content,
    parse,
    plain,
    record,
    snake,
    text,
)
from dragoman.wire.settings import WireSettings
from dragoman.wire.shapes03 import ROLES, STATES

JsonObject = dict[str, Any]

# --- parts ------------------------------------------------------------------------------------------------


def _one_source(sheet: Sheet, path: str, found: JsonObject) -> None:
    if "raw" in found and "url" in found:
        sheet.wrong(path, "must have one of bytes and uri, not both")


_file = record(
    dict,
    Field("raw", "bytes", base64, also=("fileWithBytes",)),
    Field("url", "uri", text, also=("fileWithUri",)),
    Field("filename", "name", text, also=("filename",)),
    Field("media_type", "mimeType", text, also=("mediaType",)),
    check=_one_source,
)


def _build_part(file: JsonObject | None = None, **found: Any) -> Part:
    if file is None:
        return Part(**found)
    if "raw" not in file:
        file.setdefault("url", "")  # a file may be nothing but a name
    return Part(**file, metadata=found.get("metadata"))


part = record(
    _build_part,
    Field("text", "text", text),
    Field("file", "file", _file),
    Field("data", "data", anything, nullable=True),
    Field("raw", "raw", base64),
    Field("url", "url", text),
    Field("media_type", "mediaType", text, also=("mimeType",)),
    Field("filename", "filename", text, also=("name",)),
    Field("metadata", "metadata", mapping),
    check=one_content("text", "file", "data", "raw", "url"),
)

# --- messages ---------------------------------------------------------------------------------------------

role = choice(
    {"ROLE_UNSPECIFIED": Role.USER, **{member.value: member for member in Role}, **ROLES},
    {0: Role.USER, 1: Role.USER, 2: Role.AGENT},
)
state = choice(
    {
        "TASK_STATE_UNSPECIFIED": None,
        "unknown": None,
        **{member.value: member for member in STATES if member},
        **{name: member for member, name in STATES.items() if member},
        **{name.replace("-", "_"): member for member, name in STATES.items() if member},
    },
    {},
)
_metadata = Field("metadata", "metadata", mapping)
_tenant = Field("tenant", "tenant", ident)


def _build_message(role: Role = Role.USER, **found: Any) -> Message:
    return Message(role=role, **found)


_message = record(
    _build_message,
    Field("message_id", "messageId", ident),
    Field("role", "role", role),
    Field("parts", "parts", many(part), required=True, also=("content",)),
    _metadata,
    Field("extensions", "extensions", many(text)),
    Field("reference_task_ids", "referenceTaskIds", many(ident)),
)

# --- webhooks ---------------------------------------------------------------------------------------------


def _authentication(sheet: Sheet, value: Any, path: str) -> dict[str, str] | None:
    """One scheme and its credentials, however they are spelled. Of several schemes the first counts."""
    members = mapping(sheet, value, path)
    if members is None:
        return None
    scheme = members.get("scheme")
    if scheme is None:
        several = members.get("schemes")
        schemes = many(text)(sheet, several, f"{path}.schemes") if several is not None else ()
        scheme = schemes[0] if schemes else "Bearer"
    found = {"scheme": text(sheet, scheme, f"{path}.scheme")}
    for name in ("credentials", "token", "value"):  # as Cortex and simple_a2a call them
        if members.get(name) is not None:
            found.setdefault("credentials", text(sheet, members[name], f"{path}.{name}"))
    return found


def _header_name(sheet: Sheet, value: Any, path: str) -> str | None:
    """The header the credentials travel in, which simple_a2a's clients may name beside them."""
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    name = members.get("headerName", members.get("header_name"))
    return None if name is None else text(sheet, name, f"{path}.headerName")


_inside = ("authenticationInfo",)
_push_fields = (
    Field("id", "id", ident),
    Field("url", "url", text, required=True, also=("webhookUrl",)),
    Field("token", "token", text),
    Field("authentication", "authentication", _authentication, also=_inside),
    Field("header_name", "authentication", _header_name, also=_inside),
    Field("event_types", "eventTypes", many(text)),
)
push = record(PushConfig, *_push_fields)


def _create_push(sheet: Sheet, value: Any, path: str) -> CreatePush | None:
    """The config nested or bare; the task beside it, under either name."""
    members = mapping(sheet, value, path)
    if members is None:
        return None
    nested = members.get("pushNotificationConfig", members.get("push_notification_config"))
    if nested is None:
        config = cast("PushConfig | None", push(sheet, members, path))
        named = _names(sheet, members, "taskId")
    else:
        config = cast("PushConfig | None", push(sheet, nested, "pushNotificationConfig"))
        named = _names(sheet, members, "id", "taskId")
    task_id = _one_of(sheet, named, "taskId")
    if not task_id:
        sheet.wrong("taskId", "is required")
        return None
    tenant = ident(sheet, members.get("tenant") or "", "tenant")
    return config and CreatePush(tenant=tenant, config=msgspec.structs.replace(config, task_id=task_id))


# --- operations -------------------------------------------------------------------------------------------


def _names(sheet: Sheet, members: Mapping[str, Any], *names: str, within: str = "") -> dict[str, str]:
    """Those of these members that are there, by where they are. Each may be spelled either way, and both at once."""
    spelled = (each for name in names for each in dict.fromkeys((name, snake(name))))
    return {
        f"{within}{name}": ident(sheet, members[name], f"{within}{name}")
        for name in spelled
        if members.get(name) is not None
    }


def _one_of(sheet: Sheet, named: Mapping[str, str], what: str) -> str:
    """What all the places agree on; empty when none says anything."""
    said = {where: value for where, value in named.items() if value}
    values = list(dict.fromkeys(said.values()))
    if len(values) > 1:
        sheet.wrong(what, f"is given differently in {' and '.join(said)}")
    return values[0] if values else ""


def _wait(returnImmediately: bool | None = None, blocking: bool | None = None, **found: Any) -> Configuration:
    now = returnImmediately if returnImmediately is not None else blocking is False
    return Configuration(return_immediately=now, **found)


_configuration = record(
    _wait,
    Field("accepted_output_modes", "acceptedOutputModes", many(text)),
    Field("returnImmediately", "returnImmediately", flag),
    Field("blocking", "blocking", flag),
    Field("history_length", "historyLength", integer(0)),
    Field(
        "task_push_notification_config",
        "pushNotificationConfig",
        push,
        also=("taskPushNotificationConfig",),
    ),
    Field("idempotency_key", "idempotencyKey", ident),
)


def _send(build: type[SendMessage]) -> Read:
    whole = record(
        dict,
        _tenant,
        Field("message", "message", _message, required=True),
        Field("configuration", "configuration", _configuration),
        _metadata,
    )

    def read(sheet: Sheet, value: Any, path: str) -> SendMessage | None:
        members = mapping(sheet, value, path)
        found = whole(sheet, members, path) if members is not None else None
        if members is None or found is None:
            return None
        message, inside = cast("Message", found["message"]), members["message"]
        tasks = _names(sheet, inside, "taskId", within="message.") | _names(sheet, members, "id", "taskId")
        task_id = _one_of(sheet, tasks, "taskId")
        contexts = ("contextId", "sessionId")
        places = _names(sheet, inside, *contexts, within="message.") | _names(sheet, members, *contexts)
        for where, metadata in (("message.metadata", message.metadata), ("metadata", found.get("metadata"))):
            named = (metadata or {}).get("contextId")
            if isinstance(named, str):
                places[f"{where}.contextId"] = ident(sheet, named, f"{where}.contextId")
        context_id = _one_of(sheet, places, "contextId")
        if task_id or context_id:
            found["message"] = msgspec.structs.replace(message, task_id=task_id, context_id=context_id)
        return build(**found) if not sheet.faults else None

    return read


def _of_task(build: Callable[..., Operation], *fields: Field) -> Read:
    """An operation on one task, named `id` or `taskId`."""
    rest = record(dict, _tenant, *fields)

    def read(sheet: Sheet, value: Any, path: str) -> Operation | None:
        members = mapping(sheet, value, path)
        found = rest(sheet, members, path) if members is not None else None
        if members is None or found is None:
            return None
        id = _one_of(sheet, _names(sheet, members, "id", "taskId"), "id")
        if not id:
            sheet.wrong("id", "is required (taskId will do)")
        return build(id=id, **found) if not sheet.faults else None

    return read


def _of_hook(build: Callable[..., Operation], *, config: bool) -> Read:
    """An operation on a task's webhooks. Where `taskId` is given, `id` is the config's; else it is the task's."""

    def read(sheet: Sheet, value: Any, path: str) -> Operation | None:
        members = mapping(sheet, value, path)
        if members is None:
            return None
        tasks, beside = _names(sheet, members, "taskId"), _names(sheet, members, "id")
        configs = _names(sheet, members, "pushNotificationConfigId") if config else {}
        if not tasks:
            tasks, beside = beside, {}
        task_id = _one_of(sheet, tasks, "taskId")
        if not task_id:
            sheet.wrong("taskId", "is required")
        if config and not (configs and beside.get("id") == task_id):
            configs |= beside
        named = {"id": _one_of(sheet, configs, "pushNotificationConfigId")} if config else {}
        return build(tenant=ident(sheet, members.get("tenant") or "", "tenant"), task_id=task_id, **named)

    return read


EVERYTHING = 10_000  # what a list answers at most, and where a system's lists have no pages, without being asked

_history = Field("history_length", "historyLength", integer(0))
READERS: Mapping[str, Read] = {
    "SendMessage": _send(SendMessage),
    "SendStreamingMessage": _send(SendStreamingMessage),
    "GetTask": _of_task(GetTask, _history),
    "ListTasks": record(
        ListTasks,
        _tenant,
        Field("context_id", "contextId", ident),
        Field("status", "status", state),
        Field("page_size", "pageSize", integer(1, EVERYTHING), also=("limit",)),
        Field("page_token", "pageToken", text),
        _history,
        Field("status_timestamp_after", "statusTimestampAfter", instant),
        Field("include_artifacts", "includeArtifacts", flag),
    ),
    "CancelTask": _of_task(CancelTask, _metadata),
    "SubscribeToTask": _of_task(SubscribeToTask, _history),
    "CreateTaskPushNotificationConfig": _create_push,
    "GetTaskPushNotificationConfig": _of_hook(GetPush, config=True),
    "ListTaskPushNotificationConfigs": _of_hook(ListPush, config=False),
    "DeleteTaskPushNotificationConfig": _of_hook(DeletePush, config=True),
    "GetExtendedAgentCard": record(GetCard, _tenant),
}

# --- the quick way ----------------------------------------------------------------------------------------


class _Text(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    text: str
    kind: Literal["text"] = "text"
    type: Literal["text"] = "text"


class _Said(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A message of nothing but text, which most are."""

    parts: tuple[_Text, ...]
    role: Literal["user", "ROLE_USER"] = "user"
    kind: Literal["message"] = "message"
    message_id: str = ""
    task_id: str = ""
    context_id: str = ""


class _Choices(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    accepted_output_modes: tuple[str, ...] = ()
    blocking: bool = True


class _Sent(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    message: _Said
    configuration: _Choices = _Choices()


_sent = msgspec.json.Decoder(_Sent)
_BUILDS: Mapping[str, type[SendMessage]] = {"SendMessage": SendMessage, "SendStreamingMessage": SendStreamingMessage}


def read(name: str, raw: bytes, wire: WireSettings) -> Operation:
    build = _BUILDS.get(name)
    if build is not None:
        try:
            sent = _sent.decode(raw)
        except msgspec.DecodeError:
            pass  # The reader takes a second look, and names what is wrong.
        else:
            said, choices = sent.message, sent.configuration
            most = max(len(said.parts), len(choices.accepted_output_modes))
            if said.parts and most <= wire.max_parts and plain(said.message_id, said.task_id, said.context_id):
                return build(
                    message=Message(
                        message_id=said.message_id,
                        context_id=said.context_id,
                        task_id=said.task_id,
                        role=Role.USER,
                        parts=tuple([Part(text=each.text) for each in said.parts]),
                    ),
                    configuration=Configuration(
                        accepted_output_modes=choices.accepted_output_modes, return_immediately=not choices.blocking
                    ),
                )
    return read_fields(name, parse(raw), wire, False)


def read_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    sheet = Sheet(wire, query=query)
    return finish(sheet, READERS[name](sheet, fields, ""))


def read_whole(name: str, raw: bytes, wire: WireSettings) -> Operation:
    """As `read`, for systems whose lists are of everything, artifacts too, unless a client asks for less."""
    return read(name, raw, wire) if name != "ListTasks" else read_whole_fields(name, parse(raw), wire, False)


def read_whole_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    operation = read_fields(name, fields, wire, query)
    if not isinstance(operation, ListTasks):
        return operation
    return msgspec.structs.replace(
        operation,
        page_size=EVERYTHING if operation.page_size is None else operation.page_size,
        include_artifacts=operation.include_artifacts or fields.get("includeArtifacts") is None,
    )
