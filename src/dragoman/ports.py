"""What adapters promise. The words here are the contract; `tests/conformance` holds every adapter to it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from dragoman.model.cards import Profile
from dragoman.model.facts import AnyFact, Entry
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.operations import Principal, PushConfig
from dragoman.model.security import Security, Terms
from dragoman.model.tasks import Head, Scope, Task, TaskState, Usage

# --- store -----------------------------------------------------------------------------------------------


class KeyRecord(Struct, frozen=True):
    """An idempotency key as written: for which task, or with which direct Message, and the digest of the request."""

    key: str
    digest: str
    uid: str = ""
    message: Message | None = None
    at: int = 0


class Tally(NamedTuple):
    """What an owner has, or may have, in all agents and tenants together: unfinished tasks, and bytes of all tasks."""

    tasks: int = 0
    bytes: int = 0


BOUNDLESS = Tally()


class New(Struct, frozen=True):
    """Guard of a first append: the external id must be free in its scope, the key (if any) unused, and its owner must
    have no more than `most` after it (zeros bound nothing)."""

    id: str
    context_id: str
    origin: str = ""
    key: KeyRecord | None = None
    most: Tally = BOUNDLESS


class Lifecycle(Struct, frozen=True):
    """Guard of an operation: the task's version must still be this, the key (if any) unused, and the task's owner must
    have no more than `most` after it."""

    version: int
    key: KeyRecord | None = None
    most: Tally = BOUNDLESS


class Turn(Struct, frozen=True):
    """Guard of a turn's output: this turn at this epoch must hold the task, and the task must not be terminal."""

    turn: str
    epoch: int


class Append(Struct, frozen=True, gc=False):
    uid: str
    scope: Scope
    facts: tuple[AnyFact, ...]
    guard: New | Lifecycle | Turn
    size: int = 0  # roughly the bytes of the facts; what limits count
    hooks: "tuple[Hook, ...]" = ()  # kept in the same transaction, before the facts cause deliveries


class Appended(Struct, frozen=True, gc=False):
    """The head after the append and the number of its first fact; the others follow without gaps."""

    head: Head
    first: int


Told = Callable[[Appended | Exception], None]


class Snapshot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folded task at a checkpoint. Artifacts whose bodies moved to segments are listed here without parts.

    `usage` is what earlier turns used, `uses` what the current turn (`turn`) used, by ordinal: a rerun after the
    checkpoint tells the same ordinals again.
    """

    task: Task
    usage: Usage | None = None
    turn: str = ""
    uses: tuple[tuple[int, Usage], ...] = ()
    segmented: bool = False


class Segment(Struct, frozen=True, kw_only=True):
    """A span of one artifact, folded. `replace` drops the artifact's earlier segments."""

    seq: int
    artifact: Artifact
    replace: bool = False


class Checkpoint(Struct, frozen=True, kw_only=True):
    """Folding may start here: everything up to `seq` is in the snapshot and its segments."""

    uid: str
    scope: Scope
    seq: int
    snapshot: Snapshot
    segments: tuple[Segment, ...] = ()


class Loaded(Struct, frozen=True, kw_only=True):
    """All that is needed to fold a task: snapshot and segments at head.checkpoint_seq, and the entries after it."""

    head: Head
    snapshot: Snapshot | None = None
    segments: tuple[Segment, ...] = ()
    entries: tuple[Entry, ...] = ()


class Query(Struct, frozen=True, kw_only=True):
    """Which tasks, newest status first, ties by uid descending. `before` is the last (status_at, uid) already seen.

    `known` asks for those the context's conversation still knows: a store in memory may forget a conversation before
    its tasks. A page ends with the task that makes it as large as `max_bytes`, if that is not 0.
    """

    context_id: str = ""
    known: bool = False
    state: TaskState | None = None
    since: int = 0
    before: tuple[int, str] | None = None
    limit: int = 50
    max_bytes: int = 0
    artifacts: bool = False


class Page(Struct, frozen=True, kw_only=True):
    """`items` hold folded-ready tasks (segments only when the query asked for artifacts). `total` is before paging."""

    items: tuple[Loaded, ...]
    total: int
    more: bool


class Store(Protocol):
    """Keeps logs. Durable before it answers; the same answers from every implementation.

    * `append` resolves after the commit. One conflict never touches the other appends of its group.
      Raises Conflict, KeyTaken, OverBudget, StoreFull or OutcomeUnknown. The store numbers the facts, advances the head
      by `core.heads.advance` and keeps counters and the idempotency key in the same transaction.
      It must be called from the event loop's thread and returns at once with an awaitable (a future).
    * Whether a guard admits an append is `core.heads.admits`, for every store.
    * `hooks` of an append are kept with it or not at all; one whose id the task already has replaces it.
    * Reads name their scope and answer None (or nothing) for what that scope does not own. `find` and `list` take
      EVERYONE as owner: then the tasks of all owners are meant, and of several with the same id the newest is found.
    * `since` answers entries after `after` in order: at most `limit`, about `max_bytes`, at least one if any.
    * Time is the store's: `now()`.
    """

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def now(self) -> int: ...
    def append(self, append: Append) -> Awaitable[Appended]: ...
    def write(self, append: Append, told: Told) -> None:
        """`append`, for who must hear what became of it whoever stops waiting: `told` hears it, or the error, later on
        the loop's thread, in the order of the commits, and does not raise."""
        ...

    def checkpoint(self, checkpoint: Checkpoint) -> Awaitable[None]: ...
    async def find(self, scope: Scope, id: str) -> Head | None: ...
    async def head(self, scope: Scope, uid: str) -> Head | None: ...
    async def load(self, scope: Scope, uid: str) -> Loaded | None: ...
    async def since(
        self, scope: Scope, uid: str, after: int, limit: int = 256, max_bytes: int = 262_144
    ) -> Sequence[Entry]: ...
    async def list(self, scope: Scope, query: Query) -> Page: ...
    async def key(self, scope: Scope, key: str) -> KeyRecord | None: ...
    async def tally(self, owner: str) -> Tally:
        """What an owner has. Kept with every append, so it costs the same however much that is. What a turn puts out
        may be counted when the turn ends."""
        ...

    async def keep_key(self, scope: Scope, record: KeyRecord) -> None:
        """Remember a direct reply under its key. Raises KeyTaken."""
        ...

    async def claim(self, scope: Scope, uid: str, replica: str, ttl: int) -> int | None:
        """Take a task nobody (alive) holds: its new epoch, or None. Moves version and epoch."""
        ...

    async def heartbeat(self, replica: str, uids: Sequence[str], ttl: int) -> Sequence[str]:
        """Prolong what this replica holds; answers what it has lost."""
        ...

    async def release(self, replica: str, uids: Sequence[str]) -> None: ...
    async def claimable(self, limit: int) -> Sequence[Head]:
        """Tasks neither terminal nor parked whose claim has lapsed (or never was), oldest first. A held
        question (`head.held`) does not count as parked: its handler died with its replica."""
        ...

    async def due(self, limit: int) -> Sequence[Head]:
        """Non-terminal tasks whose cancel deadline or expiry has passed."""
        ...

    async def sweep(self, *, terminal_before: int, limit: int = 500) -> Sequence[str]:
        """Delete terminal tasks settled before that time, and keys and facts that go with them; their uids."""
        ...

    def recover(self) -> Awaitable[None]:
        """Called once at start by a store that only this process can hold: every claim lapses."""
        ...


# --- webhooks --------------------------------------------------------------------------------------------


class Hook(Struct, frozen=True, kw_only=True):
    """Where a task's news go, as somebody registered it. Secrets live here and nowhere else.

    `config.id` is unique per task; `origin` is the label of the dialect that registered it, in whose words bodies are.
    """

    uid: str
    scope: Scope
    config: PushConfig
    origin: str = ""
    at: int = 0


class Delivery(Struct, frozen=True, kw_only=True):
    """One piece of news for one hook: the outbox's row, read back.

    `id` stays the same over retries and resends, so that receivers can drop repeats. `task_id` and `context_id` are
    what clients call the task. `body` is empty until the first attempt rendered it. `due` is when the next attempt may
    start; `error` says why the last one failed; a `dead` one waits for somebody to resend it.
    """

    id: str
    hook: Hook
    task_id: str
    context_id: str
    seq: int
    fact: AnyFact
    due: int
    attempts: int = 0
    body: bytes = b""
    media_type: str = ""
    error: str = ""
    dead: bool = False
    at: int = 0


class Outcome(Struct, frozen=True, kw_only=True):
    """How an attempt ended. Delivered ones leave the outbox; others wait until `due`, or are dead."""

    id: str
    delivered: bool = False
    dead: bool = False
    due: int = 0
    error: str = ""
    body: bytes = b""  # what was rendered, kept for the next attempt
    media_type: str = ""


class Hooks(Protocol):
    """What a store keeps for webhooks. Every store has it; a commit that causes deliveries writes them itself.

    * An append writes deliveries in its own transaction, from the task's hooks, for notifiable facts only
      (`core.notices`), and only when the task has hooks. Non-terminal news are one row per hook, replaced by the
      latest while it waits (another delivery, with an id of its own), not due before the hook's last non-terminal
      delivery plus the interval; terminal ones, questions and required authorization are rows of their own, due at
      once. Non-terminal news that wait are dropped for these, and when they fail while newer ones wait.
    * A hook kept for a finished task gets the task's end as a delivery, due at once, in the same transaction.
    * What fails counts an attempt. A hook that is replaced has its waiting news tried and rendered anew.
    * What waits for one hook is bounded, and so are its dead letters (`core.outbox`): the oldest questions give way.
      Hooks and all that belongs to them go when they are dropped, or with their task.
    * `due_deliveries` answers at most one delivery per hook, its oldest undelivered one, if that is due: a hook's order
      is the log's order. What is answered is not answered again until its outcome is recorded or `put_back` is
      called (a new process starts with none under way).
    * Deliveries wait in lanes, one per receiver (`core.addresses.lane` of their URL). However much waits in one, it
      does not stand before another's: a call answers at most `share` of one lane, and none of those named as `busy`.
    * `listen_deliveries` calls back, on the loop's thread, after a commit that made a delivery due now or later.
    """

    def keep_hook(self, hook: Hook) -> Awaitable[Hook]:
        """Keep or replace the hook of that id. Raises Conflict when the task does not exist for that scope."""
        ...

    async def hook(self, scope: Scope, uid: str, id: str) -> Hook | None: ...
    async def hooks(self, scope: Scope, uid: str = "") -> Sequence[Hook]:
        """The task's hooks, oldest first; of all the scope's tasks without a uid."""
        ...

    async def count_hooks(self, owner: str, most: int) -> int:
        """How many hooks an owner has in all agents and tenants, counted up to that many."""
        ...

    def drop_hook(self, scope: Scope, uid: str, id: str) -> Awaitable[bool]:
        """Forget the hook and what still waits for it; whether there was one."""
        ...

    async def due_deliveries(
        self, limit: int, *, busy: Collection[str] = (), share: int = 32
    ) -> Sequence[Delivery]: ...
    def put_back(self, ids: Sequence[str]) -> None:
        """These were answered and not attempted: they wait again, as before. Nothing is written."""
        ...

    async def next_delivery_at(self, *, busy: Collection[str] = ()) -> int:
        """When the next delivery that is not under way and in no busy lane is due; 0 when none waits."""
        ...

    def record(self, outcomes: Sequence[Outcome]) -> Awaitable[None]: ...
    async def dead_deliveries(self, limit: int = 100, before: str = "") -> Sequence[Delivery]: ...
    async def delivery(self, id: str) -> Delivery | None: ...
    def resend(self, id: str) -> Awaitable[bool]:
        """Make a delivery (usually a dead one) due now with its attempts forgotten; whether there is one."""
        ...

    def listen_deliveries(self, wake: Callable[[], None]) -> Callable[[], None]: ...


class HookedStore(Store, Hooks, Protocol):
    """What every store is."""


class Screen(Protocol):
    """Which addresses webhooks may call. Asked before a hook is kept; the sender asks again when it connects."""

    async def admit(self, url: str) -> None:
        """Raises InvalidParams for a URL that may not be called, in plain words and without what it resolved to. Its
        violation names no field; whoever asks knows where the URL stood."""
        ...


class Sealed(Struct, frozen=True):
    """A detached signature as JWS writes it, base64url without padding: whoever checks it has the payload already."""

    protected: str
    signature: str


class Signer(Protocol):
    """Signs in this deployment's name. Whoever wants to check finds the public keys at `/.well-known/jwks.json`."""

    def token(self, claims: Mapping[str, Any]) -> str:
        """A JWT over the claims: compact, with the algorithm and the key's id in its head."""
        ...

    def seal(self, payload: bytes, jku: str = "") -> Sealed:
        """A signature over the payload that goes beside it; `jku` says where the public keys are."""
        ...

    def jwks(self) -> bytes:
        """The public keys as a JWK Set in JSON: the one that signs now, and those that signed before."""
        ...


# --- callers ---------------------------------------------------------------------------------------------


class Presented(Struct, frozen=True):
    """What a request brought that may say who sends it. Header names are in lower case.

    `certificate` is the client's, in PEM, after its handshake was verified. `forwarded` says that the request came
    through a trusted proxy, whose word counts where a client's own would not.
    """

    headers: Mapping[str, str]
    query: str = ""
    certificate: str = ""
    forwarded: bool = False


class Authenticator(Protocol):
    """Says who is calling one agent.

    * `authenticate` answers at once when it can (a known token), else with an awaitable: asked for every request.
      Raises Unauthenticated with the challenge when nothing presented suffices, MissingScope when only a scope does.
      An agent that is open to all answers the anonymous `Principal()`, but only to who presented nothing.
    * `lapsed` says whether somebody let in before would not be any more: asked now and then while a stream is open.
    * `challenge` says how to log in, in the words of WWW-Authenticate.
    * `terms` are what single skills ask for beyond that, None when none does.
    * `explicit` says that browsers send none of its credentials by themselves, so that no page can borrow them.
    """

    @property
    def security(self) -> Security: ...
    @property
    def challenge(self) -> str: ...
    @property
    def terms(self) -> Terms | None: ...
    @property
    def explicit(self) -> bool: ...
    def authenticate(self, presented: Presented) -> Principal | Awaitable[Principal]: ...
    def lapsed(self, principal: Principal) -> bool: ...


# --- bus -------------------------------------------------------------------------------------------------


class Bus(Protocol):
    """Bells. A lost ring costs a moment, never a fact: whoever hears one reads the log."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def ring(self, uid: str) -> None: ...
    def listen(self, uid: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` (on the loop's thread) whenever uid rings, until the returned function is called."""
        ...

    def ring_work(self) -> None: ...
    def listen_work(self, wake: Callable[[], None]) -> Callable[[], None]: ...


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Resolver(Protocol):
    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses a name leads to, in the order to try them; none when it leads nowhere. Judges nothing."""
        ...


class Ids(Protocol):
    def uid(self) -> str:
        """A UUIDv7: unique, and later ones sort after earlier ones."""
        ...


# --- agents ----------------------------------------------------------------------------------------------


class Route(Struct, frozen=True, kw_only=True):
    """Which skill takes a message, and how its turns are to be run."""

    skill: str
    direct: bool = False
    parking: Literal["replay", "hold"] = "replay"
    on_restart: Literal["fail", "rerun"] = "fail"
    serialize: Literal["", "context"] = ""
    cancel_ms: int = 5_000
    timeout_ms: int = 0
    arguments: Any = None


class TurnHandle(Protocol):
    """One run of an agent for one message, as the engine gives it to an adapter. `agents.Turn` is its sugar.

    Emissions (`say`, `artifact`, `usage`) enter a bounded buffer flushed every tick; `emit` awaits when it is full.
    `step`, `ask` and `require_auth` await their commit. An emission that a replay already delivered is swallowed here.
    Returning from the agent completes the task; `finish` says otherwise or gives it a last message.
    """

    scope: Scope
    uid: str
    turn: str  # the turn's id: the same in all its reruns, another for every further turn; empty for a direct reply
    task_id: str
    context_id: str
    message: Message
    metadata: dict[str, Any]
    modes: tuple[str, ...]
    extensions: tuple[str, ...]
    principal: Principal
    attempt: int
    deadline: int  # milliseconds since the epoch, 0: none

    @property
    def cancelled(self) -> bool: ...
    @property
    def history(self) -> tuple[Message, ...]: ...
    async def conversation(self, limit: int = 20) -> tuple[Message, ...]:
        """Messages of earlier tasks in the same context, oldest first."""
        ...

    async def say(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> None: ...
    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> None: ...
    def usage(self, usage: Usage) -> None: ...
    async def step(self, name: str, arguments: Any, run: Callable[[str], Awaitable[Any]]) -> Any:
        """Run once and remember. `run` gets a stable step id. The result must survive JSON."""
        ...

    async def ask(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> Message:
        """Ask and park. In replay mode this raises `Parked` the first time and returns the answer when replayed."""
        ...

    async def require_auth(self, parts: Sequence[Part], until: Awaitable[Any] | None = None) -> Message | None: ...
    def finish(self, state: TaskState, parts: Sequence[Part] = (), metadata: dict[str, Any] | None = None) -> None:
        """How the task shall end when the agent returns. The last call counts."""
        ...


class Parked(BaseException):
    """Unwinds a handler whose question was committed. Never catch it."""


class Agent(Protocol):
    """What can be served. Adapters make one of a function, a framework's graph, a process, a remote agent."""

    @property
    def profile(self) -> Profile: ...
    def route(self, message: Message, metadata: dict[str, Any] | None) -> Route:
        """Choose the skill. Raises InvalidParams when the message fits none."""
        ...

    async def run(self, route: Route, turn: TurnHandle) -> None:
        """Run the author's code for one turn. An exception fails the task with a neutral message."""
        ...

    async def reply(self, route: Route, turn: TurnHandle) -> Message:
        """Answer a direct skill: a Message, no task, nothing logged."""
        ...

    async def close(self) -> None: ...
