"""What every test may lean on. Fixtures that start something stop it; nothing here sleeps or leaves loopback."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the server does."""
    return "asyncio"
