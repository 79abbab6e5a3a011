"""From a checked URL to a connection: resolve, check every address, connect to one that was checked.

The address that was checked is the address that is dialled. There is no second resolution in between for a name
server to answer differently; the URL's name only goes into TLS and the Host header; no environment variable puts a
proxy in between.
"""

import asyncio
import ssl
from typing import Any
from urllib.parse import urlsplit

from dragoman.client.exchange import Exchange, Unanswered
from dragoman.core.addresses import Guard, Target
from dragoman.ports import Resolver

CONNECT_SECONDS = 5.0
MOST_ADDRESSES = 4  # of one name that are tried, one after the other
PROXY_HEAD_LIMIT = 8_192


class Dialler:
    """Opens connections to what the guard lets through. `proxy` is an address like http://proxy.internal:3128."""

    def __init__(
        self,
        guard: Guard,
        resolver: Resolver,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        proxy: str = "",
        ca_file: str = "",
    ) -> None:
        self.guard = guard
        self._resolver = resolver
        self._connect_seconds = connect_seconds
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None
        split = urlsplit(proxy)
        self._proxy = (split.hostname or "", split.port or 80) if proxy else None

    async def addresses(self, target: Target) -> tuple[str, ...]:
        """Where a target may be dialled. Raises AddressRefused, or Unanswered when its name leads nowhere at all."""
        if target.address:
            return (target.address,)  # checked when the URL was read
        found = tuple(await self._resolver.resolve(target.host))
        if not found:
            raise Unanswered("has a name that could not be resolved")
        return self.guard.admit(target, found)

    async def dial(self, target: Target) -> Exchange:
        """Connect. Raises AddressRefused or Unanswered."""
        if self._proxy is not None and target.trusted:
            return await self._bounded(self._tunnel(target, target.host))
        tried = (await self.addresses(target))[:MOST_ADDRESSES]
        for address in tried[:-1]:
            try:
                return await self._bounded(self._reach(target, address))
            except Unanswered:
                continue
        return await self._bounded(self._reach(target, tried[-1]))

    async def _bounded(self, reaching: Any) -> Exchange:
        try:
            async with asyncio.timeout(self._connect_seconds):
                return await reaching
        except TimeoutError:
            raise Unanswered("could not be reached in time") from None
        except ssl.SSLCertVerificationError as error:
            raise Unanswered(f"has a certificate that cannot be trusted: {error.verify_message}") from None
        except ssl.SSLError:
            raise Unanswered("does not speak TLS as it should") from None
        except OSError:
            raise Unanswered("could not be reached") from None

    async def _reach(self, target: Target, address: str) -> Exchange:
        if self._proxy is not None:
            return await self._tunnel(target, address)
        secure = self._context() if target.scheme == "https" else None
        _, exchange = await asyncio.get_running_loop().create_connection(
            Exchange, address, target.port, ssl=secure, server_hostname=target.host if secure else None
        )
        return exchange

    async def _tunnel(self, target: Target, address: str) -> Exchange:
        """Have the proxy connect to the address that was checked; it learns the name only where any address will do."""
        assert self._proxy is not None
        loop = asyncio.get_running_loop()
        place = f"[{address}]:{target.port}" if ":" in address else f"{address}:{target.port}"
        transport, tunnel = await loop.create_connection(_Tunnel, *self._proxy)
        transport.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode("ascii"))
        try:
            await tunnel.opened
            exchange = Exchange()
            transport.set_protocol(exchange)
            through: asyncio.BaseTransport | None = transport
            if target.scheme == "https":
                through = await loop.start_tls(transport, exchange, self._context(), server_hostname=target.host)
            exchange.connection_made(through)
        except BaseException:
            transport.abort()
            raise
        return exchange

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._ca_file or None)
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


class _Tunnel(asyncio.Protocol):
    """Waits until the proxy says that the way is open."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self.opened.done():
            return
        head, end, more = self._head.partition(b"\r\n\r\n")
        if end:
            # Nothing may follow: the receiver has not been spoken to yet.
            led = head.startswith((b"HTTP/1.1 2", b"HTTP/1.0 2")) and not more
            self._settle("" if led else "could not be reached: the proxy refused")
        elif len(self._head) > PROXY_HEAD_LIMIT:
            self._settle("could not be reached: the proxy answered something that is not HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle("could not be reached: the proxy closed the connection")

    def _settle(self, failure: str) -> None:
        if self.opened.done():
            return
        if failure:
            self.opened.set_exception(Unanswered(failure))
        else:
            self.opened.set_result(None)
