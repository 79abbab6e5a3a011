"""Whether a webhook's URL may be called, asked when somebody registers it.

A yes is no promise: a name may lead elsewhere by the time it is called. The sender's dialler asks the same guard again,
about the addresses it then connects to.
"""

import asyncio
from collections.abc import Sequence

from dragoman.core.addresses import Guard
from dragoman.model.errors import AddressRefused, InvalidParams
from dragoman.ports import Resolver

RESOLVE_SECONDS = 5.0


class AddressScreen:
    """`ports.Screen` by a guard's rules. Names of hosts that are allowed by name are never resolved.

    Give it a resolver of its own: names that never resolve, registered by whoever likes, would hold up the sender's.
    """

    def __init__(self, guard: Guard, resolver: Resolver, *, seconds: float = RESOLVE_SECONDS) -> None:
        self._guard = guard
        self._resolver = resolver
        self._seconds = seconds

    async def admit(self, url: str) -> None:
        try:
            target = self._guard.target(url)
            if not (target.trusted or target.address):
                self._guard.admit(target, await self._addresses(target.host))
        except AddressRefused as error:
            raise InvalidParams(str(error)) from None

    async def _addresses(self, host: str) -> Sequence[str]:
        """None for a name that does not answer in time, as for one that leads nowhere: nobody can tell them apart."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._resolver.resolve(host)
        except TimeoutError:
            return ()
