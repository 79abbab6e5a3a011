"""From settings to parts: every default is said once in effect, and every setting reaches its part."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.app import checks, pushing, wiring
from dragoman.app.settings import NAMES, Settings
from dragoman.app.sources import resolve
from dragoman.app.units import Bytes, Seconds
from dragoman.core.addresses import Guard
from dragoman.engine.limits import Limits
from dragoman.gateway.settings import GatewaySettings
from dragoman.push.settings import PushSettings
from dragoman.server.settings import ServerSettings
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.settings import WireSettings


@pytest.mark.proves("D-2-7")
def test_the_parts_defaults_are_the_documented_ones() -> None:
    assert wiring.limits(Settings()) == Limits()
    assert wiring.serving(Settings()) == ServerSettings()
    assert wiring.reading(Settings()) == WireSettings()
    assert wiring.door(Settings()) == GatewaySettings(hosts=("127.0.0.1",))
    assert checks.addresses(Settings()) == Guard()
    assert pushing.outgoing(Settings()) == PushSettings()


ELSEWHERE = {"port", "allow_public", "auth_callers", "store", "max_size", "cached_contexts"} | {
    "auth_require",
    "auth_admin_scope",
    "tls_certificate",
    "tls_key",
    "tls_client_ca",
    "log_level",
    "log_format",
    "signing_keys",
    "push",
    "push_ca_file",
    "push_interval",
    "push_issuer",
    "push_proxy",
    "push_signed",
}
"""What is read where it is used: by the listener, the checks, the entrances, the store, the sender and the logs."""


@pytest.mark.parametrize("name", sorted(set(NAMES) - ELSEWHERE))
def test_a_setting_changes_some_part(name: str) -> None:
    assert parts(resolve({name: other_than(name)}, environ={})) != parts(Settings())


def parts(settings: Settings) -> list[Any]:
    return [
        msgspec.structs.asdict(part)
        for part in (
            wiring.limits(settings),
            wiring.serving(settings),
            wiring.reading(settings),
            wiring.door(settings),
            checks.addresses(settings),
            pushing.outgoing(settings),
        )
    ]


CHOICES = {"profile": "proto", "mounts": "/a2a", "frames": "plain", "allowed_cidrs": "10.0.0.0/8", "retries": "2s"}


def other_than(name: str) -> str:
    section, key = NAMES[name]
    default = getattr(getattr(Settings(), section), key)
    if key in CHOICES:
        return CHOICES[key]
    if isinstance(default, bool):
        return str(not default).lower()
    return {Seconds: "7m", Bytes: "3KiB", int: "7"}.get(type(default), "other.example")


def test_the_store_is_the_one_its_url_names(tmp_path: Path) -> None:
    assert isinstance(wiring.store(resolve({"store": "memory://"}, environ={})), MemoryStore)
    assert isinstance(wiring.store(resolve({"store": f"{tmp_path}/a.db"}, environ={})), SqliteStore)
    assert list(tmp_path.iterdir()) == []  # nothing is opened before it starts


def test_an_address_of_its_own_is_a_name_it_answers_to_and_the_wildcards_stand_for_every_address() -> None:
    own = wiring.door(resolve({"host": "192.168.1.5"}, environ={}))
    assert own.hosts == ("192.168.1.5",) and not own.by_address
    for everywhere in ("0.0.0.0", "::"):
        found = wiring.door(resolve({"host": everywhere, "allowed_hosts": "a.example"}, environ={}))
        assert found.hosts == ("a.example",) and found.by_address
