"""`Agent`: skills made of functions. The decorators collect them; the engine calls the rest (`ports.Agent`)."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from msgspec.structs import replace

from dragoman.agents.direct import Answer, DirectTurn
from dragoman.agents.handler import Handler, is_async, perform
from dragoman.agents.incoming import Incoming
from dragoman.agents.schema import Misfit
from dragoman.agents.signature import read
from dragoman.agents.threads import SLOTS, Threads
from dragoman.agents.tools import Tool, registered, skills
from dragoman.agents.turn import Calls, Ended, Turn, output_of
from dragoman.model.cards import Extension, Overlay, Overlays, Profile, Provider, Skill
from dragoman.model.errors import AgentError, InvalidParams, Violation
from dragoman.model.messages import Message, Part
from dragoman.model.operations import Principal
from dragoman.model.tasks import TaskState
from dragoman.ports import Parked, Route, TurnHandle

F = TypeVar("F", bound=Callable[..., Any])
Router = Callable[[Incoming], str | None]

MODES = Profile(name="", description="", version="").input_modes


class Agent:
    """What you serve: a name, a card, and skills.

    `input_modes`, once named, are enforced; an agent that names none accepts everything. `serialize="context"` runs
    one turn at a time per conversation. `threads` is how many sync handlers may run at once. `extended` declares an
    extended card; a function (async or not) says what it shows to one caller beyond what it shows to all.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str = "",
        version: str = "0.1.0",
        provider: Provider | None = None,
        icon_url: str = "",
        documentation_url: str = "",
        serialize: Literal["", "context"] = "",
        extensions: Sequence[Extension | str] = (),
        streaming: bool = True,
        input_modes: Sequence[str] | None = None,
        output_modes: Sequence[str] | None = None,
        extended: bool | Overlays = False,
        threads: int = SLOTS,
    ) -> None:
        if not name.strip():
            raise ValueError("An agent needs a name: it stands on its card")
        _one_of("serialize", serialize, ("", "context"))
        self._base = Profile(
            name=name,
            description=description or name,
            version=version,
            provider=provider,
            icon_url=icon_url,
            documentation_url=documentation_url,
            extensions=tuple(Extension(uri=each) if isinstance(each, str) else each for each in extensions),
            streaming=streaming,
            input_modes=tuple(input_modes or MODES),
            output_modes=tuple(output_modes or MODES),
        )
        self._accepts = tuple(input_modes or ())
        self._extended = extended
        self._serialize: Literal["", "context"] = serialize
        self._handlers: dict[str, Handler] = {}
        self._router: Router | None = None
        self._threads = Threads(threads)
        self._profile: Profile | None = None

    @classmethod
    def from_tools(
        cls,
        tools: Sequence[Tool | Callable[..., Any]],
        name: str = "Tools",
        *,
        run: Callable[..., Any] | None = None,
        **words: Any,
    ) -> "Agent":
        """An agent and its card made of a tool registry: functions, or `Tool`s with words of their own.

        With `run`, every message goes to that function, whatever tools it uses then (the skill a message names is in
        `turn.metadata`); without, each tool's function is a skill of its own. An agent without tools shows a coding
        agent's skills and needs `run`. `words` are those of `Agent(...)`. Raises ValueError.
        """
        registry = [registered(tool) for tool in tools]
        functions = {tool.name: tool.run for tool in registry}
        agent = cls(name, **words)
        agent._base = replace(agent._base, transitions=True)
        cards = skills(registry)
        for card in cards:
            function = run or functions.get(card.id)
            if function is None:
                raise ValueError(f"Nothing does the work of {card.id!r}: give the tool a function, or the agent run=")
            agent.skill(
                id=card.id, name=card.name, description=card.description, tags=card.tags, examples=card.examples
            )(function)
        if run is not None:
            agent.router(lambda incoming: cards[0].id)
        return agent

    # --- for authors ---------------------------------------------------------------------------------

    @overload
    def skill(self, function: F, /) -> F: ...
    @overload
    def skill(
        self,
        /,
        *,
        id: str = "",
        name: str = "",
        description: str = "",
        tags: Sequence[str] = (),
        examples: Sequence[str] = (),
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        scopes: Sequence[str] = (),
        direct: bool = False,
        extended: bool | Callable[[Principal], bool] = False,
        on_restart: Literal["fail", "rerun"] = "fail",
        parking: Literal["replay", "hold"] = "replay",
        timeout: float = 0,
        cancel_within: float = 5,
    ) -> Callable[[F], F]: ...
    def skill(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        id: str = "",
        name: str = "",
        description: str = "",
        tags: Sequence[str] = (),
        examples: Sequence[str] = (),
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        scopes: Sequence[str] = (),
        direct: bool = False,
        extended: bool | Callable[[Principal], bool] = False,
        on_restart: Literal["fail", "rerun"] = "fail",
        parking: Literal["replay", "hold"] = "replay",
        timeout: float = 0,
        cancel_within: float = 5,
    ) -> Any:
        """Make a function a skill. Its name is the id, its docstring the description, its hints the arguments.

        `scopes` are what callers must have been given to use it; where nobody logs in, nobody has any. `direct` answers
        with a Message and no task. `extended` shows the skill on the extended card only; a function says to whom.
        `on_restart` says what a crash of the server means for a working turn. `timeout` (seconds, 0: none) fails a
        longer turn; `cancel_within` is how long a cancelled one may clean up.
        """

        _one_of("on_restart", on_restart, ("fail", "rerun"))
        _one_of("parking", parking, ("replay", "hold"))
        if timeout < 0 or cancel_within < 0:
            raise ValueError("timeout= and cancel_within= are seconds, and never negative")

        def add(function: F) -> F:
            key = id or function.__name__
            card = Skill(
                id=key,
                name=name or _title(key),
                description=description or inspect.getdoc(function) or name or _title(key),
                tags=tuple(tags) or tuple(_words(key)),
                examples=tuple(examples),
                input_modes=tuple(input_modes),
                output_modes=tuple(output_modes),
                scopes=tuple(scopes),
            )
            route = Route(
                skill=key,
                direct=direct,
                parking=parking,
                on_restart=on_restart,
                serialize=self._serialize,
                cancel_ms=round(cancel_within * 1000),
                timeout_ms=round(timeout * 1000),
            )
            self._add(Handler(function, read(function), card, route, extended, not is_async(function)))
            return function

        return add if function is None else add(function)

    def router(self, function: Router) -> Router:
        """Let this function choose the skill of a message that names none: it returns an id, or None for no skill.

        It runs while the message is being accepted: it must be quick and always choose alike.
        """
        self._router = function
        return function

    def schemas(self, skill: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """JSON Schema of a skill's arguments and of its result; None where it takes or gives free text."""
        signature = self._handlers[skill].signature
        return signature.input_schema, signature.output_schema

    @property
    def skilled(self) -> bool:
        """Whether it has any skills yet."""
        return bool(self._handlers)

    # --- for the engine ------------------------------------------------------------------------------

    @property
    def profile(self) -> Profile:
        if self._profile is None:
            self._profile = self._describe()
        return self._profile

    def route(self, message: Message, metadata: dict[str, Any] | None) -> Route:
        if len(self._handlers) == 1:
            return next(iter(self._handlers.values())).route
        incoming = Incoming(message, metadata)
        wanted = incoming.metadata.get("skill")
        if isinstance(wanted, str) and wanted in self._handlers:
            return self._handlers[wanted].route
        known = ", ".join(self._handlers)
        if self._router is not None:
            chosen = self._router(incoming)
            if chosen in self._handlers:
                return self._handlers[chosen].route
            if chosen is not None:
                raise AgentError("The agent chose a skill that it does not have")
            raise InvalidParams(f"No skill takes this message. Name one of: {known}", "message.metadata.skill")
        if not self._handlers:
            raise InvalidParams("This agent has no skills yet")
        problem = "Several skills could take this" if wanted is None else "There is no such skill"
        raise InvalidParams(f"{problem}. Name one of: {known}", "message.metadata.skill")

    async def run(self, route: Route, turn: TurnHandle) -> None:
        handler = self._handler(route)
        own = Turn(turn, self._calls(handler))
        try:
            arguments = handler.signature.arguments(own)
        except Misfit as misfit:
            violations = [{"field": field, "description": what} for field, what in misfit.violations]
            turn.finish(TaskState.REJECTED, (Part(text=str(misfit)),), {"violations": violations})
            return
        try:
            await perform(handler, arguments, own, output_of(own), self._threads)
        except Ended:
            return
        except BaseExceptionGroup as group:
            # A task group around `ask` or `reject` wraps what unwinds it.
            if parked := _leaf(group, Parked):
                raise parked from None
            if not _leaf(group, Ended):
                raise

    async def reply(self, route: Route, turn: TurnHandle) -> Message:
        handler = self._handler(route)
        own = DirectTurn(turn, self._calls(handler))
        answer = Answer(turn.context_id)
        try:
            arguments = handler.signature.arguments(own)
        except Misfit as misfit:
            raise InvalidParams([Violation(field, what) for field, what in misfit.violations]) from None
        await perform(handler, arguments, own, answer, self._threads)
        return answer.message()

    async def close(self) -> None:
        """Nothing to give back: threads end with their functions."""

    # --- inside --------------------------------------------------------------------------------------

    def _add(self, handler: Handler) -> None:
        id = handler.skill.id
        if id in self._handlers:
            raise ValueError(f"There already is a skill {id!r}; give this one another id=")
        if handler.route.direct and handler.route.parking == "hold":
            raise ValueError(f"{id}: a direct skill never parks; leave parking= out")
        self._handlers[id] = handler
        self._profile = None

    def _handler(self, route: Route) -> Handler:
        handler = self._handlers.get(route.skill)
        if handler is None:
            raise AgentError(f"The skill {route.skill!r} is gone")
        return handler

    def _calls(self, handler: Handler) -> Calls:
        return self._threads.nested if handler.threaded else self._threads.call

    def _describe(self) -> Profile:
        handlers = self._handlers.values()
        hidden = tuple(each.skill for each in handlers if each.extended is True)
        chosen = any(callable(each.extended) for each in handlers)
        extended = bool(self._extended) or bool(hidden) or chosen
        accepts = [*self._accepts, *(mode for each in handlers for mode in each.skill.input_modes)]
        return replace(
            self._base,
            skills=tuple(each.skill for each in handlers if not each.extended),
            accepts=tuple(dict.fromkeys(accepts)) if self._accepts else (),
            extended=extended,
            extended_skills=hidden if extended else None,
            overlay=self._overlay if chosen or callable(self._extended) else None,
        )

    async def _overlay(self, principal: Principal) -> Overlay:
        """What the author says about this caller, and the skills that are for some callers only and for this one."""
        found = self._extended(principal) if callable(self._extended) else None
        overlay = (await found if inspect.isawaitable(found) else found) or Overlay()
        named = {skill.id for skill in overlay.skills} | set(overlay.without)
        mine = tuple(
            each.skill
            for each in self._handlers.values()
            if callable(each.extended) and each.skill.id not in named and each.extended(principal)
        )
        return replace(overlay, skills=mine + overlay.skills)


def _leaf(group: BaseExceptionGroup[Any], kind: type[BaseException]) -> BaseException | None:
    for error in cast(tuple[BaseException, ...], group.exceptions):
        if isinstance(error, kind):
            return error
        if isinstance(error, BaseExceptionGroup) and (found := _leaf(cast(BaseExceptionGroup[Any], error), kind)):
            return found
    return None


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is none of {', '.join(map(repr, known))}")


def _words(id: str) -> list[str]:
    return [word.lower() for word in re.split(r"[\W_]+", id) if word]


def _title(id: str) -> str:
    return " ".join(word.capitalize() for word in _words(id)) or id
