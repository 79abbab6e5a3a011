"""Who is measured, and how each is started."""

from dataclasses import dataclass, field
from pathlib import Path

from bench.environments import interpreter
from bench.places import AGENTS, ROOT


@dataclass(frozen=True)
class Contender:
    """One way to serve the bench's agents. `store` is what its server is given; `{home}` is its empty directory."""

    name: str
    family: str
    script: str
    store: str
    dialect: str = "1.0"
    environment: dict[str, str] = field(default_factory=dict[str, str])
    modules: str = ""
    note: str = ""
    options: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        return self.family.startswith("dragoman")

    def command(self, behaviour: str, port: int, home: Path, answer: Path | None) -> list[str]:
        python, store = str(interpreter(self.family)), self.store.format(home=home)
        if self.ours:
            served = f"{AGENTS / self.script}:{behaviour}"
            options = ["--host", "127.0.0.1", "--port", str(port), "--store", store, "--log-level", "warning"]
            return [python, "-m", "dragoman", "serve", served, *options, *self.options]
        command = [python, str(AGENTS / self.script), "--behaviour", behaviour, "--port", str(port), "--store", store]
        return [*command, "--answer", str(answer)] if answer else command

    def variables(self) -> dict[str, str]:
        path = f"{ROOT / 'src'}:{AGENTS}" if self.ours else str(AGENTS)
        return {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **self.environment}


_QUIET = {"OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false"}
_SDK = "a2a.server.request_handlers, a2a.server.routes, a2a.server.tasks"

_ALL = (
    Contender("dragoman", "dragoman", "dragoman_agent.py", "sqlite:///{home}/tasks.db", modules="dragoman"),
    Contender(
        "dragoman FULL",
        "dragoman",
        "dragoman_agent.py",
        "sqlite:///{home}/tasks.db?synchronous=FULL",
        note="fsync at every commit",
    ),
    Contender(
        "dragoman with callers",
        "dragoman auth",
        "dragoman_agent.py",
        "sqlite:///{home}/tasks.db",
        note="who logs in, and how, differs within the scenario",
    ),
    Contender("dragoman memory", "dragoman", "dragoman_agent.py", "memory://", note="nothing durable"),
    Contender(
        "dragoman, webhooks",
        "dragoman",
        "dragoman_agent.py",
        "sqlite:///{home}/tasks.db",
        environment={"DRAGOMAN_PUSH_ALLOW_LOOPBACK": "true", "DRAGOMAN_LIMIT_WEBHOOKS_PER_CALLER": "0"},
        note="receivers on this machine",
    ),
    Contender("a2a-sdk memory", "a2a-sdk", "a2a_sdk_agent.py", "memory", modules=_SDK, note="tracing on, as it comes"),
    Contender("a2a-sdk memory, no tracing", "a2a-sdk", "a2a_sdk_agent.py", "memory", modules=_SDK, environment=_QUIET),
    Contender("a2a-sdk SQLite", "a2a-sdk", "a2a_sdk_agent.py", "{home}/tasks.db", note="tracing on, as it comes"),
    Contender("a2a-sdk SQLite, no tracing", "a2a-sdk", "a2a_sdk_agent.py", "{home}/tasks.db", environment=_QUIET),
    Contender(
        "a2a-sdk SQLite WAL, no tracing",
        "a2a-sdk",
        "a2a_sdk_agent.py",
        "{home}/tasks.db?wal",
        environment=_QUIET,
        note="WAL and synchronous=NORMAL set by us: the same durability as dragoman's default",
    ),
    Contender("fasta2a", "fasta2a", "fasta2a_agent.py", "memory", modules="fasta2a"),
    Contender("a2akit", "a2akit", "a2akit_agent.py", "memory", dialect="0.3", modules="a2akit"),
    Contender("ceiling", "ceiling", "ceiling_app.py", "memory", modules="uvicorn", note="answers the same bytes"),
    Contender("fsync probe", "probe", "", "", note="32 KiB written and synced, again and again"),
)
CONTENDERS = {contender.name: contender for contender in _ALL}
