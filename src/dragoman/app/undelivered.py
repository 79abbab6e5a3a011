"""Webhooks that were given up, for people: listed, shown, sent again. The same whether a server runs or not.

One process owns a database, so a running server is asked through its socket (`server.local`) and does it itself;
without one, whoever asks opens the file and does the same.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dragoman.app.settings import Settings
from dragoman.app.stores import SqliteChoice, choose
from dragoman.model.errors import DragomanError
from dragoman.ports import Delivery, Hooks

MOST = 1_000
AT_ONCE = 100


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`ids` to show or resend; none to resend means all."""

    do: Literal["list", "show", "resend"]
    ids: tuple[str, ...] = ()
    limit: int = 100
    before: str = ""


class Letter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A delivery as a person may see it: without the secrets of its webhook, so without the query of its URL too.

    `body` is there when one was asked for.
    """

    id: str
    at: str
    agent: str
    task: str
    config: str
    url: str
    seq: int
    attempts: int
    error: str = ""
    dead: bool = False
    media_type: str = ""
    body: str = ""


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`missing` are ids nobody knows (any more); `running` says that a server sends what is to be sent again."""

    letters: tuple[Letter, ...] = ()
    resent: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    running: bool = False
    error: str = ""


def socket_of(settings: Settings) -> Path | None:
    """Where the server of this store listens for local requests; None when its store is no file."""
    choice = choose(settings.store.url)
    if not isinstance(choice, SqliteChoice):
        return None
    path = choice.path.absolute()
    return path.with_name(path.name + "-control")


async def respond(hooks: Hooks, line: bytes) -> bytes:
    """What a running server says. A line that is no request was written by somebody who is not us."""
    try:
        request = msgspec.json.decode(line, type=Request)
        return msgspec.json.encode(msgspec.structs.replace(await answer(hooks, request), running=True))
    except (msgspec.DecodeError, DragomanError) as error:
        return msgspec.json.encode(Answer(error=str(error)))


async def answer(hooks: Hooks, request: Request) -> Answer:
    match request.do:
        case "list":
            found = await hooks.dead_deliveries(max(1, min(request.limit, MOST)), request.before)
            return Answer(letters=tuple(_letter(each) for each in found))
        case "show":
            shown = {id: await hooks.delivery(id) for id in request.ids}
            letters = tuple(_letter(each, body=True) for each in shown.values() if each is not None)
            return Answer(letters=letters, missing=tuple(id for id, each in shown.items() if each is None))
        case "resend":
            ids = request.ids or await _all_dead(hooks)
            resent = [id for id in ids if await hooks.resend(id)]
            return Answer(resent=tuple(resent), missing=tuple(id for id in ids if id not in resent))


async def _all_dead(hooks: Hooks) -> tuple[str, ...]:
    found: list[str] = []
    while page := await hooks.dead_deliveries(AT_ONCE, found[-1] if found else ""):
        found += [each.id for each in page]
    return tuple(reversed(found))  # oldest first, as they were made


def _letter(delivery: Delivery, *, body: bool = False) -> Letter:
    hook = delivery.hook
    return Letter(
        id=delivery.id,
        at=datetime.fromtimestamp(delivery.at / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        agent=hook.scope.agent,
        task=delivery.task_id,
        config=hook.config.id,
        url=hook.config.url.partition("?")[0],
        seq=delivery.seq,
        attempts=delivery.attempts,
        error=delivery.error,
        dead=delivery.dead,
        media_type=delivery.media_type,
        body=delivery.body.decode("utf-8", "replace") if body else "",
    )
