"""From the settings to webhooks: which addresses may be called, and who calls them with what."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from dragoman import __version__
from dragoman.app import checks
from dragoman.app.settings import Settings
from dragoman.app.undelivered import respond, socket_of
from dragoman.client.dialler import Dialler
from dragoman.client.poster import Poster
from dragoman.client.resolver import SystemResolver
from dragoman.model.tasks import Scope, View
from dragoman.ports import Delivery, HookedStore, Screen, Signer
from dragoman.push.letters import Letters
from dragoman.push.screen import AddressScreen
from dragoman.push.sender import Sender
from dragoman.push.settings import PushSettings
from dragoman.server.local import Local
from dragoman.wire.news import newsroom
from dragoman.wire.settings import WireSettings

Look = Callable[[Scope, str], Awaitable[View | None]]


def screen(settings: Settings) -> Screen:
    return AddressScreen(checks.addresses(settings), SystemResolver())


def outgoing(settings: Settings) -> PushSettings:
    push = settings.push
    return PushSettings(
        seconds=push.timeout,
        retries=tuple(each.ms for each in push.retries),
        retry_busy=push.retry_429,
        longest_wait=push.longest_wait.ms,
        total=push.total,
        per_receiver=push.per_receiver,
    )


def letters(settings: Settings, signer: Signer | None) -> Letters:
    issuer = settings.push.issuer or settings.server.public_url.rstrip("/") or "dragoman"
    return Letters(agent=f"dragoman/{__version__}", issuer=issuer, signer=signer if settings.push.signed else None)


def dialler(settings: Settings) -> Dialler:
    """With a resolver of its own, and room in it for everything under way: names that never resolve hold up nobody."""
    ca_file = settings.push.ca_file
    return Dialler(
        checks.addresses(settings),
        SystemResolver(settings.push.total),
        proxy=settings.push.proxy,
        ca_file=str(Path(ca_file).expanduser()) if ca_file else "",
    )


def sender(
    settings: Settings, kept: HookedStore, look: Look, wire: WireSettings, signer: Signer | None
) -> Sender | None:
    """Who sends, where webhooks are on. `look` shows a task as it stands."""
    if not settings.push.enabled:
        return None
    render = newsroom(wire)

    async def tell(delivery: Delivery) -> tuple[bytes, str] | None:
        view = await look(delivery.hook.scope, delivery.task_id)
        return None if view is None else render(delivery.hook, delivery.fact, view)

    return Sender(
        kept,
        tell=tell,
        poster=Poster(dialler(settings)),
        letters=letters(settings, signer),
        now=kept.now,
        settings=outgoing(settings),
    )


def local(settings: Settings, kept: HookedStore) -> Local | None:
    """Where `dragoman push` asks while the server runs, if the store is a file."""
    path = socket_of(settings)
    return None if path is None else Local(path, partial(respond, kept))
