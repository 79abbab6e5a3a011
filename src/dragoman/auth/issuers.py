"""Where the keys of an issuer are: behind its discovery document, at an address, or in a file."""

from pathlib import Path

from dragoman.auth.fetching import LARGEST, Fetcher, Unfetchable, secure
from dragoman.auth.trusted import parse


class Discovered:
    """Fetches keys as OpenID Connect says: the discovery document names its issuer and the address of its keys."""

    def __init__(self, fetcher: Fetcher, url: str, issuer: str) -> None:
        self._fetcher = fetcher
        self._url = url
        self._issuer = issuer

    async def __call__(self) -> object:
        document = await self._fetcher.json(self._url)
        if document.get("issuer") != self._issuer:
            raise Unfetchable(f"is the document of another issuer than {self._issuer}")
        keys = document.get("jwks_uri")
        if not isinstance(keys, str) or not secure(keys):
            raise Unfetchable("names no address of keys that is https or on this machine")
        if self._url.startswith("https:") and not keys.startswith("https:"):
            raise Unfetchable("names an address of keys that is less safe than its own")
        return await self._fetcher.json(keys)


class Fetched:
    """Fetches keys from their address."""

    def __init__(self, fetcher: Fetcher, url: str) -> None:
        self._fetcher = fetcher
        self._url = url

    async def __call__(self) -> object:
        return await self._fetcher.json(self._url)


class Kept:
    """Reads keys from a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def __call__(self) -> object:
        return self.read()

    def read(self) -> object:
        """Raises Unfetchable."""
        try:
            with self._file.open("rb") as opened:
                content = opened.read(LARGEST + 1)
        except OSError as error:
            raise Unfetchable(f"cannot be read: {error.strerror or 'it is not a file'}") from None
        if len(content) > LARGEST:
            raise Unfetchable(f"holds more than {LARGEST} bytes")
        return parse(content)
