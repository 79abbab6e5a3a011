"""Takes notifications in: checks who sends, reads any dialect, hands each over once, answers what senders act on."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from dragoman.model.errors import DragomanError
from dragoman.model.news import News
from dragoman.wire.heard import heard

if TYPE_CHECKING:
    from dragoman.webhooks.proof import Signatures

log = logging.getLogger("dragoman.webhooks")

LARGEST_BODY = 4 * 1024 * 1024
REMEMBERED = 10_000  # deliveries whose repeats are recognised

Handler = Callable[[News], Awaitable[None]]
Token = str | Callable[[str], str | None]


class Answer(NamedTuple):
    """What to answer the sender: a status, and a plain sentence when it is not a success."""

    status: int
    text: str = ""


class Receiver:
    """An ASGI application for one webhook address; or call `receive` from a framework's own handler.

    `handle` gets every piece of news once, as soon as it is known to be genuine. When it raises, the sender is asked to
    try again; what it did until then is its own affair, so what must happen only once should look at `news.delivery`:
    after a restart of ours, a repeat is not recognised.

    A sender is known by the `token` that was registered with the webhook (or what `token(task_id)` answers, None for a
    task we do not expect), by its signature (`jwks`: the address of its keys, usually `…/.well-known/jwks.json`, or a
    JWK Set; with `issuer` and our own `url` also by whom and for whom), or by both. `expects(task_id)` says whether a
    task is one of ours. Raises ValueError when there is nothing to know senders by; `unchecked=True` takes anybody's
    word, for trying things out.
    """

    def __init__(
        self,
        handle: Handler,
        *,
        token: Token = "",
        jwks: str | Mapping[str, Any] = "",
        issuer: str = "",
        url: str = "",
        expects: Callable[[str], bool] | None = None,
        unchecked: bool = False,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        if not (token or jwks or unchecked):
            raise ValueError("Say how to know the sender: token=… as it was registered, or jwks=… of its keys")
        self._handle = handle
        self._token = token
        self._signatures = _signatures(jwks, issuer, url) if jwks else None
        self._expects = expects
        self._largest = largest_body
        self._taken: OrderedDict[str, asyncio.Task[bool]] = OrderedDict()
        self._handling: set[asyncio.Task[bool]] = set()

    async def receive(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """Check one notification and hand it over. Answer the sender with the status; it does not raise."""
        if len(body) > self._largest:
            return Answer(413, f"More than {self._largest} bytes are not taken")
        named = {name.lower(): value for name, value in headers.items()}
        if isinstance(self._token, str) and self._token and not _knows(named, self._token):
            return Answer(401, "The token is missing or wrong")
        if self._signatures is not None and (refusal := await self._unsigned(self._signatures, named, body)):
            return refusal
        try:
            news = replace(heard(body), delivery=named.get("idempotency-key", ""))
        except DragomanError as error:
            return Answer(400, str(error))
        if refusal := self._unexpected(news.task.id, named):
            return refusal
        return await self._hand_over(news)

    async def _unsigned(self, signatures: "Signatures", headers: Mapping[str, str], body: bytes) -> Answer | None:
        try:
            if await signatures.hold(headers, body):
                return None
        except DragomanError as error:
            return Answer(503, str(error))
        return Answer(401, "The signature is missing or does not hold")

    def _unexpected(self, task_id: str, headers: Mapping[str, str]) -> Answer | None:
        if not isinstance(self._token, str):
            token = self._token(task_id)
            if token is None:
                return Answer(404, "No such task is expected")
            if not _knows(headers, token):
                return Answer(401, "The token is missing or wrong")
        if self._expects is not None and not self._expects(task_id):
            return Answer(404, "No such task is expected")
        return None

    async def _hand_over(self, news: News) -> Answer:
        """Once, however often it comes, and to its end, even if the sender does not wait for it."""
        handing = self._taken.get(news.delivery) if news.delivery else None
        if handing is None:
            handing = asyncio.ensure_future(self._handled(news))
            self._handling.add(handing)
            handing.add_done_callback(self._handling.discard)
            if news.delivery:
                self._taken[news.delivery] = handing
                if len(self._taken) > REMEMBERED:
                    self._taken.popitem(last=False)
        await asyncio.wait([handing])
        if handing.cancelled() or not handing.result():
            return Answer(500, "It could not be handled now")
        return Answer(204)

    async def _handled(self, news: News) -> bool:
        handled = False
        try:
            await self._handle(news)
            handled = True
        except Exception:
            log.exception("A webhook's news could not be handled", extra={"a2a.task.id": news.task.id})
        finally:
            if not handled:
                self._taken.pop(news.delivery, None)  # so that the next try is one
        return handled

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        """As an ASGI application, at whatever path it is mounted."""
        if scope["type"] == "lifespan":
            return await _live(receive, send)
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        if scope["method"] != "POST":
            return await _reply(send, Answer(405, "Webhooks are posted"), (b"allow", b"POST"))
        body = await self._body(receive)
        if body is None:
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return await _reply(send, await self.receive(headers, body))

    async def _body(self, receive: Callable[[], Awaitable[Any]]) -> bytes | None:
        """No more of it than decides; None when the sender left."""
        body, more = b"", True
        while more and len(body) <= self._largest:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return body


def _knows(headers: Mapping[str, str], token: str) -> bool:
    """Whether the request says the token, in either of the headers that are in use for it."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    said = (headers.get("x-a2a-notification-token", ""), bearer.strip() if scheme.lower() == "bearer" else "")
    # Both are compared, whatever the first says, so that how long it takes tells nothing.
    first, second = [compare_digest(each.encode(), token.encode()) for each in said]
    return bool(token) and (first or second)


def _signatures(jwks: str | Mapping[str, Any], issuer: str, url: str) -> "Signatures":
    try:
        from dragoman.webhooks.keyring import Keyring
        from dragoman.webhooks.proof import Signatures
    except ImportError:
        raise ValueError("Checking signatures needs more packages; run: pip install 'dragoman[auth]'") from None
    return Signatures(Keyring(jwks), issuer=issuer, url=url)


async def _reply(send: Callable[[Any], Any], answer: Answer, *extra: tuple[bytes, bytes]) -> None:
    body = answer.text.encode()
    headers = [*extra]
    if body:
        headers += [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
    for stage in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{stage}.complete"})
