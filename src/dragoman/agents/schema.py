"""Values and their types: JSON Schema out of hints, arguments out of data, and the path of what does not fit.

msgspec does the work; pydantic models anywhere inside are handed to pydantic.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from dragoman.agents.content import is_pydantic
from dragoman.model.errors import Violation

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>[^`]*)`$")


class Misfit(ValueError):
    """Data does not fit its type; `violations` name the fields."""

    def __init__(self, *violations: Violation) -> None:
        self.violations = violations
        super().__init__("; ".join(f"{at}: {what}" if at else what for at, what in violations))


def fit(value: Any, hint: Any, *, strict: bool = True) -> Any:
    """The value as that type, or Misfit."""
    try:
        return _convert(value, hint, strict)
    except Misfit:
        # Some peers print every number as a float: 1.0 where 1 is meant.
        whole = _whole_numbers(value)
        if whole == value and repr(whole) == repr(value):
            raise
        try:
            return _convert(whole, hint, strict)
        except Misfit:
            pass
        raise


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type, its root spelled out. Raises TypeError for what JSON cannot hold."""
    schema = msgspec.json.schema(hint, schema_hook=_model_schema)
    definitions = cast(dict[str, Any], schema.pop("$defs", {}))
    if (name := str(schema.get("$ref", "")).removeprefix("#/$defs/")) in definitions:
        schema = dict(cast(dict[str, Any], definitions[name]))
    definitions.update(_hoist([schema, definitions]))
    used = _reachable(schema, definitions)
    if used:
        schema["$defs"] = {name: definitions[name] for name in definitions if name in used}
    return schema


def _convert(value: Any, hint: Any, strict: bool) -> Any:
    try:
        return msgspec.convert(value, hint, strict=strict, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _misfit(error) from error


def _decode(kind: Any, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    if not is_pydantic(kind):
        raise NotImplementedError(f"{kind.__name__} cannot be made from data")
    try:
        return kind.model_validate(value)
    except ValueError as error:
        details = cast(Any, error).errors(include_url=False, include_input=False, include_context=False)
        raise Misfit(*(Violation(_dotted(entry["loc"]), str(entry["msg"])) for entry in details)) from error


def _misfit(error: msgspec.ValidationError) -> Misfit:
    text = str(error)
    if isinstance(error.__cause__, Misfit):
        found = re.search(r" - at `([^`]*)`$", text)
        root = _path(found[1]) if found else ""
        inner = error.__cause__.violations
        return Misfit(*(Violation(".".join(filter(None, (root, at))), what) for at, what in inner))
    match = cast(re.Match[str], _AT.match(text))
    what, path = match["what"], _path(match["path"] or "")
    for pattern, words in ((_MISSING, "is required"), (_UNKNOWN, "is not a known field")):
        if known := pattern.match(what):
            return Misfit(Violation(".".join(filter(None, (path, known["field"]))), words))
    return Misfit(Violation(path, what.replace("`", "")))


def _path(path: str) -> str:
    return path.removeprefix("$").removeprefix(".")


def _dotted(location: tuple[str | int, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path.removeprefix(".")


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in cast(list[Any], value)]
    return value


def _model_schema(kind: Any) -> dict[str, Any]:
    if is_pydantic(kind):
        return kind.model_json_schema(ref_template="#/$defs/{model}")
    raise TypeError(f"{kind!r} has no JSON form; use types msgspec or pydantic can encode")


def _hoist(node: Any) -> dict[str, Any]:
    """Take definitions nested by pydantic out of the tree: their references point at the root."""
    found: dict[str, Any] = {}
    for child in _nodes(node):
        nested = child.pop("$defs", None)
        if isinstance(nested, dict):
            found.update(cast(dict[str, Any], nested))
    return found


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        branch = cast(dict[str, Any], node)
        yield branch
        for child in list(branch.values()):
            yield from _nodes(child)
    elif isinstance(node, list):
        for child in cast(list[Any], node):
            yield from _nodes(child)


def _reachable(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    used: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        for node in _nodes(waiting.pop()):
            name = str(node.get("$ref", "")).removeprefix("#/$defs/")
            if name in definitions and name not in used:
                used.add(name)
                waiting.append(definitions[name])
    return used
