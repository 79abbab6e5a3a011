"""/openapi.json: what one agent answers to over HTTP, told from the tables that do the answering.

Verbs and operations come from `wire`'s own route matching, method names from its mounts, schemas from the model. Only
the path templates stand here; a test asks the server about each of them.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.model.cards import Profile
from dragoman.model.messages import Artifact, Message
from dragoman.model.operations import GetPush, GetTask, ListPush, ListTasks, Operation, PushConfig, SendMessage
from dragoman.model.tasks import Task, TaskStatus
from dragoman.server.pages import ALIVE, CARDS, JWKS, OPENAPI, READY
from dragoman.wire import rest
from dragoman.wire.k03 import K03
from dragoman.wire.p03 import P03
from dragoman.wire.p10 import P10

SPECIFICATION = "https://a2a-protocol.org"

TEMPLATES = (
    "/message:send",
    "/message:stream",
    "/tasks",
    "/tasks/{id}",
    "/tasks/{id}:cancel",
    "/tasks/{id}:subscribe",
    "/tasks/{id}/pushNotificationConfigs",
    "/tasks/{id}/pushNotificationConfigs/{configId}",
)
MODERN = (*TEMPLATES, "/extendedAgentCard")
LEGACY = (*TEMPLATES, "/card")


class Wire(Struct, rename="camel", omit_defaults=True):
    pass


class SendMessageResponse(Wire):
    """Exactly one of the two."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class TaskStatusUpdateEvent(Wire):
    task_id: str
    context_id: str
    status: TaskStatus
    metadata: dict[str, Any] | UnsetType = UNSET


class TaskArtifactUpdateEvent(Wire):
    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: dict[str, Any] | UnsetType = UNSET


class StreamResponse(Wire):
    """The data of one server-sent event. Exactly one of the four."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    status_update: TaskStatusUpdateEvent | UnsetType = UNSET
    artifact_update: TaskArtifactUpdateEvent | UnsetType = UNSET


class ListTasksResponse(Wire):
    tasks: list[Task]
    next_page_token: str
    page_size: int
    total_size: int


class ListPushConfigsResponse(Wire):
    configs: list[PushConfig]
    next_page_token: str = ""


class CancelTaskRequest(Wire):
    metadata: dict[str, Any] | UnsetType = UNSET


class Status(Wire):
    code: int
    status: str
    message: str
    details: list[dict[str, Any]] = []


class ErrorResponse(Wire):
    error: Status


class JsonRpcRequest(Wire):
    jsonrpc: Literal["2.0"]
    method: Annotated[str, Meta(extra_json_schema={"enum": sorted({**P10.methods, **K03.methods})})]
    id: str | int | None = None
    params: dict[str, Any] = {}


class JsonRpcError(Wire):
    code: int
    message: str
    data: Any = None


class JsonRpcResponse(Wire):
    """Exactly one of result and error."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: Any = None
    error: JsonRpcError | UnsetType = UNSET


class Health(Wire):
    status: str


BODIES: dict[str, type] = {
    "SendMessage": SendMessage,
    "SendStreamingMessage": SendMessage,
    "CancelTask": CancelTaskRequest,
    "CreateTaskPushNotificationConfig": PushConfig,
}
QUERIES: dict[str, type[Operation]] = {
    "GetTask": GetTask,
    "ListTasks": ListTasks,
    "GetTaskPushNotificationConfig": GetPush,
    "ListTaskPushNotificationConfigs": ListPush,
}
ANSWERS: dict[str, type] = {
    "SendMessage": SendMessageResponse,
    "GetTask": Task,
    "ListTasks": ListTasksResponse,
    "CancelTask": Task,
    "CreateTaskPushNotificationConfig": PushConfig,
    "GetTaskPushNotificationConfig": PushConfig,
    "ListTaskPushNotificationConfigs": ListPushConfigsResponse,
}
STREAMS = ("SendStreamingMessage", "SubscribeToTask")
UNOFFICIAL = ("headerName", "eventTypes", "origin")  # what a push configuration has for other dialects' sake
# What the model can do without for other dialects' sake, and 1.0 cannot.
REQUIRED: dict[str, tuple[str, ...]] = {
    "Artifact": ("artifactId", "parts"),
    "Message": ("messageId", "role", "parts"),
    "PushConfig": ("url",),
    "Task": ("id", "contextId", "status"),
    "TaskStatus": ("state",),
}
BOUNDS: dict[str, dict[str, Any]] = {
    "ListTasks.pageSize": {"minimum": 1, "maximum": 100},
    "historyLength": {"minimum": 0},
    "pageSize": {"minimum": 0},
}
NAMED = (*BODIES.values(), *ANSWERS.values(), StreamResponse, ErrorResponse, JsonRpcRequest, JsonRpcResponse, Health)


def describe(root: str, profile: Profile, *, keys: bool = False) -> dict[str, Any]:
    """The description of the agent that lives at `root`; with `keys`, public keys of ours lie there too."""
    _, components = msgspec.json.schema_components(
        list(dict.fromkeys(NAMED)), ref_template="#/components/schemas/{name}"
    )
    for name, schema in components.items():
        schema.pop("description", None)  # our docstrings speak to who reads the code
        _hold(name, schema)
    for member in UNOFFICIAL:
        del components["PushConfig"]["properties"][member]
    paths: dict[str, Any] = {"/": {"post": _json_rpc()}}
    for template in MODERN:
        paths[template] = _verbs(template, "extendedAgentCard", legacy=False)
    for template in LEGACY:
        paths[f"/v1{template}"] = _verbs(template, "card", legacy=True)
    for path in CARDS:
        summary = f"The agent's card; A2A-Version {P10.version} or {P03.version} asks for that version alone"
        paths[path] = {"get": _page(summary, {"type": "object"})}
    if keys:
        paths[JWKS] = {"get": _page("The keys our signatures are checked with, a JWK Set", {"type": "object"})}
    paths[OPENAPI] = {"get": _page("This description", {"type": "object"})}
    return {
        "openapi": "3.1.0",
        "info": {"title": profile.name, "description": profile.description, "version": profile.version},
        "externalDocs": {"url": SPECIFICATION, "description": "The Agent2Agent protocol"},
        "servers": [{"url": root}],
        "paths": paths | _probes(root, profile),
        "components": {"schemas": components},
    }


def _hold(name: str, schema: dict[str, Any]) -> None:
    """Say what must be there, and that more may be: unknown members are ignored."""
    if schema.get("type") != "object":
        return
    schema.pop("additionalProperties", None)
    members = schema["properties"]
    for member in REQUIRED.get(name, ()):
        members[member] = _plain(members[member])
        members[member].pop("default", None)
        if members[member].get("type") == "array":
            members[member]["minItems"] = 1
        elif members[member].get("type") == "string":
            members[member]["minLength"] = 1
        schema["required"] = [*schema.get("required", ()), member]
    for member in members:
        members[member] |= _bounds(name, member)


def _bounds(kind: str, member: str) -> dict[str, Any]:
    return BOUNDS.get(f"{kind}.{member}", BOUNDS.get(member, {}))


def _probes(root: str, profile: Profile) -> dict[str, Any]:
    """Probes belong to the server; an agent elsewhere than at its root does not have them."""
    if "/agents/" in root:
        return {}
    alive = {path: {"get": _page("Whether the server lives", _ref(Health))} for path in ALIVE}
    ready = _page("Whether work may be sent here", _ref(Health))
    ready["responses"]["503"] = _content("Starting or stopping", "application/json", _ref(Health))
    return alive | {READY: {"get": ready}}


def _json_rpc() -> dict[str, Any]:
    answer = _content("An answer, or the server-sent events of a stream", "application/json", _ref(JsonRpcResponse))
    answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return {
        "summary": "JSON-RPC: every method, in both versions",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref(JsonRpcRequest)}}},
        "responses": {
            "200": answer,
            "default": _content("Refused before it was read", "application/json", _ref(JsonRpcResponse)),
        },
    }


def _verbs(template: str, card: str, *, legacy: bool) -> dict[str, Any]:
    found = rest.match(template[1:].split("/"), card)
    assert found is not None, template
    item: dict[str, Any] = {
        verb.lower(): _operation(name, template, legacy=legacy, write=verb == "POST")
        for verb, name in found.verbs.items()
    }
    named = [part.partition("}")[0] for part in template.split("{")[1:]]
    if named:
        item["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named
        ]
    return item


def _operation(name: str, template: str, *, legacy: bool, write: bool) -> dict[str, Any]:
    """One verb of one path. Version 0.3's shapes are its specification's; here they are just objects."""
    told: dict[str, Any] = {"summary": f"{name} ({(P03 if legacy else P10).version})"}
    if write and name in BODIES:
        schema = {"type": "object"} if legacy else _ref(BODIES[name])
        told["requestBody"] = {
            "required": name != "CancelTask",
            "content": {media: {"schema": schema} for media in ("application/json", rest.A2A_JSON)},
        }
    if not write and name in QUERIES:
        told["parameters"] = _query(QUERIES[name], template)
    if name in STREAMS:
        answer = _content("Server-sent events", "text/event-stream", {"type": "string"})
        if not legacy:
            answer["content"]["text/event-stream"]["itemSchema"] = _ref(StreamResponse)
    else:
        known = ANSWERS.get(name)
        schema = {"type": "object"} if legacy or known is None else _ref(known)
        answer = _content("The answer", "application/json", schema)
    error = {"type": "object"} if legacy else _ref(ErrorResponse)
    told["responses"] = {"200": answer, "default": _content("What went wrong", "application/json", error)}
    return told


def _query(operation: type[Operation], template: str) -> list[dict[str, Any]]:
    """What may follow the question mark: the operation's members that are not in the path."""
    bound = {"id", "taskId"} if "{" in template else set[str]()
    schema = msgspec.json.schema(operation)
    members: dict[str, Any] = next(iter(schema["$defs"].values()))["properties"]
    if operation is ListTasks:
        members = next(defined["properties"] for name, defined in schema["$defs"].items() if name == "ListTasks")
    return [
        {"name": name, "in": "query", "schema": _plain(found) | _bounds(operation.__name__, name)}
        for name, found in members.items()
        if name not in bound
    ]


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A member as a query spells it: never null, and without references to elsewhere."""
    kinds = schema.get("anyOf", [schema])
    kept = [kind for kind in kinds if kind.get("type") != "null"]
    kind = kept[0] if kept else schema
    return {"$ref": f"#/components/schemas/{kind['$ref'].rpartition('/')[2]}"} if "$ref" in kind else kind


def _page(summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _content("It is here", "application/json", schema)}}


def _content(description: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


def _ref(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
