"""Small JSON documents of an issuer, fetched from where the operator said: bounded in size and time, no redirects.

These addresses come from the configuration, or from a document there, never from a caller: so they may lie inside the
network. But nobody on the way may change a key, so what is not on this machine must be https.
"""

from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from dragoman.model.errors import DragomanError

LARGEST = 512 * 1024
SECONDS = 10.0


class Unfetchable(DragomanError):
    """A document could not be had. The text goes on after the address: "answered 404"."""


def secure(url: str) -> bool:
    """Whether what comes from there is what was sent: https, or this machine itself."""
    try:
        split = urlsplit(url)
        host, _ = split.hostname, split.port
    except ValueError:
        return False
    if not host or split.username is not None or split.fragment:
        return False
    return split.scheme == "https" or (split.scheme == "http" and _loopback(host))


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Fetcher:
    """`ca_file` is trusted instead of the system's authorities; `proxy` is an address like http://proxy:3128. Nothing
    is taken from the environment."""

    def __init__(self, *, ca_file: str = "", proxy: str = "", seconds: float = SECONDS) -> None:
        self._ca_file = ca_file
        self._proxy = proxy or None
        self._seconds = seconds

    async def json(self, url: str) -> dict[str, Any]:
        """The object at that address. Raises Unfetchable."""
        body = await self.get(url)
        try:
            found: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Unfetchable("answered something that is not JSON") from None
        if not isinstance(found, dict):
            raise Unfetchable("answered JSON that is no object")
        return cast("dict[str, Any]", found)

    async def get(self, url: str) -> bytes:
        """The body of an answer with status 200. Raises Unfetchable."""
        if not secure(url):
            raise Unfetchable("is neither https nor on this machine")
        import asyncio
        import ssl

        import httpx2  # only who trusts an issuer pays for it

        try:
            tls = ssl.create_default_context(cafile=self._ca_file or None)
            async with (
                asyncio.timeout(self._seconds),
                httpx2.AsyncClient(verify=tls, proxy=self._proxy, trust_env=False) as client,
                client.stream("GET", url, headers={"accept": "application/json"}) as answer,
            ):
                if answer.is_redirect:
                    raise Unfetchable("redirects; configure the address it leads to")
                if answer.status_code != 200:
                    raise Unfetchable(f"answered {answer.status_code}")
                return await _bounded(answer)
        except TimeoutError:
            raise Unfetchable("did not answer in time") from None
        except (OSError, httpx2.HTTPError) as error:
            raise Unfetchable(f"could not be reached ({type(error).__name__})") from None


async def _bounded(answer: Any) -> bytes:
    found = b""
    async for piece in answer.aiter_bytes():
        found += piece
        if len(found) > LARGEST:
            raise Unfetchable(f"answered more than {LARGEST} bytes")
    return found
