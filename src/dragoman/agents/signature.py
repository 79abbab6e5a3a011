"""What a skill's function takes and gives, read once from its signature.

A parameter named `turn` (or hinted `Turn`) gets the turn. All others are the skill's arguments: they come from a data
part, checked against the hints, or from the text where exactly one argument can take it.
"""

import dataclasses
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from copy import deepcopy
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, is_typeddict

import msgspec

from dragoman.agents.content import is_pydantic
from dragoman.agents.incoming import Incoming, Reply
from dragoman.agents.schema import Misfit, fit, schema_of
from dragoman.model.errors import Violation
from dragoman.model.messages import Artifact, Message, Part

_TURNS = ("Turn", "SyncTurn")
_STREAMS = (AsyncIterator, AsyncGenerator, AsyncIterable, Iterator, Generator, Iterable)
_SCALARS = (int, float, bool)


class Parameter(NamedTuple):
    name: str
    hint: Any
    required: bool
    positional: bool


class Signature(NamedTuple):
    """How to call the function. `model` holds all arguments; `whole` says the data part is the only argument itself."""

    turn: str
    parameters: tuple[Parameter, ...]
    model: type[msgspec.Struct] | None
    whole: bool
    text: str
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None

    def arguments(self, incoming: Incoming) -> dict[str, Any]:
        """The skill's arguments out of the message. Raises Misfit when they are not in it."""
        if self.model is None:
            return {}
        given: Any = incoming.data
        text = incoming.text
        if given is None and not self.text and text.lstrip().startswith("{"):
            given = _parsed(text)
        wanted = [each for each in self.parameters if each.name != self.turn]
        if self.whole:
            if given is not None:
                return {wanted[0].name: fit(given, wanted[0].hint)}
        elif given is not None and not isinstance(given, dict) and len(wanted) == 1:
            given = {wanted[0].name: given}
        if given is None:
            given = {}
        if isinstance(given, dict) and self.text and text and self.text not in given:
            given = {**cast(dict[str, Any], given), self.text: self._spoken(text, wanted)}
        model = fit(given, self.model)
        return {name: getattr(model, name) for name in self.model.__struct_fields__}

    def place(self, arguments: dict[str, Any], turn: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the function takes them, the turn among them."""
        named = {**arguments, self.turn: turn} if self.turn else dict(arguments)
        placed = [named.pop(each.name) for each in self.parameters if each.positional]
        return placed, named

    def _spoken(self, text: str, wanted: list[Parameter]) -> Any:
        hint = next(each.hint for each in wanted if each.name == self.text)
        if _takes_text(hint):
            return text
        try:
            return msgspec.to_builtins(fit(text.strip(), hint, strict=False))
        except Misfit as misfit:
            raise Misfit(*(Violation(self.text, what) for _, what in misfit.violations)) from misfit


def read(function: Callable[..., Any]) -> Signature:
    """Raises TypeError, in words for the author, for a signature no message can fill."""
    parameters: list[Parameter] = []
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    turn = ""
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise TypeError(f"{_name(function)}: *{each.name} cannot be filled from a message; name the arguments")
        is_turn = not turn and _is_turn(each)
        hint = Any if is_turn else _hint(function, each.annotation)
        required = each.default is each.empty
        parameters.append(Parameter(each.name, hint, required, each.kind is each.POSITIONAL_ONLY))
        if is_turn:
            turn = each.name
        else:
            fields.append((each.name, hint) if required else (each.name, hint, _default(each.default)))
    arguments = [each for each in parameters if each.name != turn]
    whole = len(arguments) == 1 and _is_model(arguments[0].hint)
    model, schema = None, None
    if arguments:
        try:
            model = msgspec.defstruct(_name(function), fields, forbid_unknown_fields=True, kw_only=True)
            schema = schema_of(arguments[0].hint if whole else model)
        except TypeError as error:
            raise TypeError(f"{_name(function)}: {error}") from error
    return Signature(turn, tuple(parameters), model, whole, _text(arguments, whole), schema, _output(function))


def result_hint(function: Callable[..., Any]) -> Any:
    """The type a function says it returns, or Any."""
    annotation = getattr(function, "__annotations__", {}).get("return", Any)
    try:
        return _hint(function, annotation)
    except TypeError:
        return Any


def _is_turn(parameter: inspect.Parameter) -> bool:
    hint = parameter.annotation
    if isinstance(hint, str):
        return parameter.name == "turn" or hint.rpartition(".")[2] in _TURNS
    named = getattr(hint, "__name__", "") in _TURNS and getattr(hint, "__module__", "").startswith("dragoman.")
    return named or parameter.name == "turn"


def _hint(function: Callable[..., Any], annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    try:
        names = {**getattr(function, "__globals__", {}), **inspect.getclosurevars(function).nonlocals}
        return eval(annotation, names)
    except Exception as error:
        raise TypeError(
            f"{_name(function)}: the hint {annotation!r} cannot be resolved; import it in that module"
        ) from error


def _default(value: Any) -> Any:
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=lambda: deepcopy(cast(Any, value)))
    return value


def _bare(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a hint, without Annotated and None."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for each in get_args(hint) for kind in _bare(each))
    return () if hint is None or hint is NoneType else (hint,)


def _takes_text(hint: Any) -> bool:
    return any(kind is str or kind is Any for kind in _bare(hint))


def _is_scalar(hint: Any) -> bool:
    kinds = _bare(hint)
    return bool(kinds) and all(
        kind in _SCALARS or get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum))
        for kind in kinds
    )


def _is_model(hint: Any) -> bool:
    """A type that is itself an object of named fields: then the data part is the argument."""
    kinds = _bare(hint)
    if len(kinds) != 1:
        return False
    kind: Any = kinds[0]
    if (get_origin(kind) or kind) is dict:
        return True
    return _is_struct(kind) or is_pydantic(kind) or is_typeddict(kind) or dataclasses.is_dataclass(kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _text(arguments: list[Parameter], whole: bool) -> str:
    """The one argument that plain text fills: the only one there is, the only str, or the only required str."""
    if whole:
        return ""
    if len(arguments) == 1 and (_takes_text(arguments[0].hint) or _is_scalar(arguments[0].hint)):
        return arguments[0].name
    takers = [each for each in arguments if _takes_text(each.hint)]
    required = [each for each in arguments if each.required]
    if len(takers) == 1:
        return takers[0].name
    return required[0].name if len(required) == 1 and required[0] in takers else ""


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Misfit(Violation("", "The text is not valid JSON; send the arguments as a data part")) from error


def _output(function: Callable[..., Any]) -> dict[str, Any] | None:
    hint = result_hint(function)
    if get_origin(hint) in _STREAMS:
        hint = get_args(hint)[0]
    kinds = _bare(hint)
    spoken = (Any, str, bytes, Part, Message, Artifact, Reply)
    if not kinds or any(kind in spoken for kind in kinds):
        return None
    try:
        return schema_of(hint)
    except TypeError:
        return None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
