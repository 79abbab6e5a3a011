from collections.abc import Iterator

import pytest

from tests.interop.parties import PARTIES, Client, Party, connected
from tests.serving import serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real `dragoman serve` with the interop agent, its tasks in SQLite."""
    directory = tmp_path_factory.mktemp("interop")
    with serving("examples/interop.py", "--store", str(directory / "tasks.db"), logs=directory / "server.log") as base:
        yield base


@pytest.fixture(scope="module", params=PARTIES, ids=lambda party: party.label)
def party(request: pytest.FixtureRequest) -> Party:
    return request.param


@pytest.fixture(scope="module")
def client(party: Party, server: str) -> Iterator[Client]:
    """One foreign client, connected straight to the server, for all its tests."""
    with connected(party, server) as client:
        yield client
