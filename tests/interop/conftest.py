from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.interop.parties import PARTIES, Client, Party, connected
from tests.serving import serving


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """By profile, the base URL of a real `dragoman serve` with the interop agent, its tasks in SQLite."""
    with ExitStack() as stack:

        @cache
        def start(profile: str) -> str:
            directory = tmp_path_factory.mktemp("interop")
            options = ["--store", str(directory / "tasks.db"), *(["--profile", profile] if profile else [])]
            env = {"DRAGOMAN_PUSH_ALLOW_LOOPBACK": "true"}
            return stack.enter_context(serving("examples/interop.py", *options, logs=directory / "server.log", env=env))

        yield start


@pytest.fixture(scope="module", params=PARTIES, ids=lambda party: party.label)
def party(request: pytest.FixtureRequest) -> Party:
    return request.param


@pytest.fixture(scope="module")
def server(party: Party, servers: Callable[[str], str]) -> str:
    return servers(party.profile)


@pytest.fixture(scope="module")
def client(party: Party, server: str) -> Iterator[Client]:
    """One foreign client, connected straight to the server, for all its tests."""
    with connected(party, server) as client:
        yield client
