"""Every setting, once: its section, its type, its default. docs/configuration.md explains each one.

A setting has one name in three spellings: `public_url` under `[server]` in dragoman.toml, `DRAGOMAN_PUBLIC_URL` in
the environment, `--public-url` (or `public_url=` in Python). `app.sources` reads them; components never see this
object, they get values (`app.wiring`).
"""

from typing import Any, Literal

from msgspec import Struct

from dragoman.app.units import Bytes, Seconds, Secret
from dragoman.model.errors import DragomanError
from dragoman.wire.settings import SEED_MOUNTS

KIB = 1024
MIB = 1024 * KIB
HOUR = 3_600
DAY = 24 * HOUR


class SettingsError(DragomanError):
    """A setting cannot be used. The text names it, says where it came from and what would do."""


class SkillSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one skill asks of its callers, beyond what its agent does."""

    require: tuple[str, ...] | None = None
    scopes: tuple[str, ...] = ()


class AgentSettings(Struct, frozen=True, kw_only=True):
    """One agent of a `[[agents]]` list. The first is served at the root, each with a slug at /agents/<slug>/."""

    target: str
    slug: str = ""
    require: tuple[str, ...] | None = None
    scopes: tuple[str, ...] = ()
    public: bool = False
    skills: dict[str, SkillSettings] = {}


class RemoteSettings(Struct, frozen=True, kw_only=True):
    """Another agent, for whoever calls it: its address, its card's where that is elsewhere, what to log in with."""

    url: str
    card_url: str = ""
    token: Secret = Secret()
    timeout: Seconds = Seconds(120)
    capabilities: tuple[str, ...] = ()


class ServerSettings(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 8000
    profile: Literal["", "official", "coding-agent", "cortex", "simple", "a2x", "proto"] = ""
    mounts: tuple[str, ...] = SEED_MOUNTS
    frames: tuple[str, ...] = ()
    cortex_statuses: bool = False
    public_url: str = ""
    allow_public: bool = False
    tls_certificate: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    keepalive: Seconds = Seconds(15)
    drain: Seconds = Seconds(20)
    close: Seconds = Seconds(5)
    head_timeout: Seconds = Seconds(10)
    body_timeout: Seconds = Seconds(60)
    idle_timeout: Seconds = Seconds(75)
    stall_timeout: Seconds = Seconds(60)
    card_max_age: Seconds = Seconds(300)
    card_versions: tuple[str, ...] = ()
    require_version: bool = False
    open_extended_card: bool = False
    connections_per_address: int = 0
    backlog: int = 2048


class StoreSettings(Struct, frozen=True, kw_only=True):
    url: str = "sqlite:///dragoman.db"
    retention: Seconds = Seconds(DAY)
    sweep: Seconds = Seconds(300)
    parked: Seconds = Seconds(30 * DAY)
    max_size: Bytes = Bytes(0)
    cached_tasks: int = 1_000
    cached_contexts: int = 500
    cached_bytes: Bytes = Bytes(32 * MIB)
    cached_for: Seconds = Seconds(HOUR)


class LimitSettings(Struct, frozen=True, kw_only=True):
    body: Bytes = Bytes(8 * MIB)
    head: Bytes = Bytes(32 * KIB)
    parts: int = 1_000
    depth: int = 64
    containers: int = 200_000
    requests: int = 20_000
    requests_per_caller: int = 10_000
    rate_per_caller: int = 300
    rate_per_address: int = 300
    rate_burst: int = 50
    rate_wait: Seconds = Seconds(2)
    rate_loopback: bool = False
    uploads: Bytes = Bytes(256 * MIB)
    uploads_per_caller: Bytes = Bytes(64 * MIB)
    answers: Bytes = Bytes(256 * MIB)
    answers_per_caller: Bytes = Bytes(64 * MIB)
    streams: int = 10_000
    streams_per_caller: int = 5_000
    streams_per_address: int = 5_000
    running: int = 10_000
    held: int = 1_000
    tasks_per_caller: int = 5_000
    bytes_per_caller: Bytes = Bytes(10 * 1024 * MIB)
    inbox: int = 8
    webhooks: int = 16
    webhooks_per_caller: int = 10_000
    hold: Seconds = Seconds(0)
    patience: Seconds = Seconds(600)


class SigningSettings(Struct, frozen=True, kw_only=True):
    keys: tuple[str, ...] = ()


class PushSettings(Struct, frozen=True, kw_only=True):
    enabled: bool = True
    allowed_hosts: tuple[str, ...] = ()
    allowed_cidrs: tuple[str, ...] = ()
    allow_loopback: bool = False
    https_only: bool = False
    interval: Seconds = Seconds(1.5)
    timeout: Seconds = Seconds(15)
    retries: tuple[Seconds, ...] = (Seconds(1), Seconds(3), Seconds(9))
    retry_429: bool = False
    longest_wait: Seconds = Seconds(600)
    total: int = 512
    per_receiver: int = 16
    signed: bool = True
    issuer: str = ""
    proxy: str = ""
    ca_file: str = ""


class AuthSettings(Struct, frozen=True, kw_only=True):
    callers: str = ""
    require: tuple[str, ...] = ()
    admin_scope: str = ""
    a2x_tasks: bool = False
    simple_errors: bool = False


class Bearer(Struct, frozen=True, kw_only=True, tag_field="type", tag="bearer"):
    """Tokens of the callers' file in the Authorization header."""


class ApiKey(Struct, frozen=True, kw_only=True, tag_field="type", tag="api-key"):
    """Keys of the callers' file in a header, a query parameter or a cookie."""

    place: Literal["header", "query", "cookie"] = "header"
    name: str = "X-API-Key"


class Basic(Struct, frozen=True, kw_only=True, tag_field="type", tag="basic"):
    """Names and passwords of the callers' file."""


class Jwt(Struct, frozen=True, kw_only=True, tag_field="type", tag="jwt"):
    """JWTs of an issuer whose keys are found by OpenID Connect discovery, at a URL or in a file."""

    issuer: str = ""
    audience: tuple[str, ...] = ()
    discovery: str = ""
    jwks: str = ""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519")
    scopes: tuple[str, ...] = ()
    subject: str = "sub"
    tenants: tuple[str, ...] | None = None
    tenants_claim: str = ""
    leeway: Seconds = Seconds(60)
    refresh: Seconds = Seconds(600)
    authorization_url: str = ""
    token_url: str = ""
    ca_file: str = ""
    proxy: str = ""


class Mtls(Struct, frozen=True, kw_only=True, tag_field="type", tag="mtls"):
    """Certificates of clients: checked by our own listener, or by a trusted proxy that says so in a header."""

    header: str = ""
    listed: bool = False
    scopes: tuple[str, ...] = ()
    tenants: tuple[str, ...] | None = None


Scheme = Bearer | ApiKey | Basic | Jwt | Mtls
"""One way to log in: a table `[auth.schemes.<name>]`."""


class LogSettings(Struct, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "human", "json"] = "auto"
    requests: bool = False


class Settings(Struct, frozen=True, kw_only=True):
    """The resolved whole. `origins` says where each value that is not a default came from, `secrets` holds the digests
    of those the environment gave, by the variable's name; `off` says why nothing is to be served, where a file does.
    """

    agents: tuple[AgentSettings, ...] = ()
    remotes: dict[str, RemoteSettings] = {}
    off: str = ""
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    auth: AuthSettings = AuthSettings()
    schemes: dict[str, Scheme] = {}
    limits: LimitSettings = LimitSettings()
    signing: SigningSettings = SigningSettings()
    push: PushSettings = PushSettings()
    log: LogSettings = LogSettings()
    origins: dict[str, str] = {}
    secrets: dict[str, bytes] = {}

    def origin(self, name: str) -> str:
        return self.origins.get(name, "default")


SECTIONS: dict[str, type[Struct]] = {
    "server": ServerSettings,
    "store": StoreSettings,
    "auth": AuthSettings,
    "limits": LimitSettings,
    "signing": SigningSettings,
    "push": PushSettings,
    "log": LogSettings,
}


def flat(section: str, key: str) -> str:
    """A setting's name outside the file, where sections don't exist."""
    if (section, key) in (("store", "url"), ("push", "enabled")):
        return section
    return f"{section.removesuffix('s')}_{key}" if section in ("auth", "log", "limits", "signing", "push") else key


NAMES: dict[str, tuple[str, str]] = {
    flat(section, key): (section, key) for section, struct in SECTIONS.items() for key in struct.__struct_fields__
}
"""Flat name → section and key. Flat names are unique; a test holds that."""


def value_of(settings: Settings, name: str) -> Any:
    section, key = NAMES[name]
    return getattr(getattr(settings, section), key)
