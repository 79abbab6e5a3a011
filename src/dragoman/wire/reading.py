"""The tolerant reader: loosely spelled JSON into model values, with every fault under the caller's own name for it.

Fast decoders refuse whatever is unusual; this reader takes a second look. It accepts snake_case beside camelCase, null
for absent, numbers for enums, integral floats and digit strings for integers, base64 in either alphabet with or without
padding, and ignores what it does not know. What changes meaning is refused: wrong types, unknown enum names, two
contents in one part, two spellings of one member that say different things.

A *read* is `(sheet, value, path) -> value`. Faults are written on the sheet and reading goes on, so that one answer
names them all.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, NamedTuple, cast

import msgspec

from dragoman.model.errors import InvalidParams, ParseFailure, Violation
from dragoman.wire.settings import WireSettings

MAX_ID = 256
MAX_VIOLATIONS = 20
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_INTEGER = re.compile(r"-?\d{1,30}(?:\.0{1,10})?")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_INT32 = 2**31 - 1

type_names: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


class Sheet:
    """What one reading found wrong, and the limits it reads under. `query` values are all strings."""

    __slots__ = ("faults", "query", "violations", "wire")

    def __init__(self, wire: WireSettings, *, query: bool = False) -> None:
        self.wire = wire
        self.query = query
        self.faults = 0
        self.violations: list[Violation] = []

    def wrong(self, path: str, why: str) -> None:
        self.faults += 1
        if self.faults <= MAX_VIOLATIONS:
            self.violations.append(Violation(path, why))

    def expected(self, path: str, what: str, value: object) -> None:
        self.wrong(path, f"must be {what}, not {type_names[type(value)]}")


Read = Callable[[Sheet, Any, str], Any]
Check = Callable[[Sheet, str, dict[str, Any]], None]


def parse(raw: bytes) -> Any:
    """JSON of any shape. The text was already found to be UTF-8 and shallow enough."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.ValidationError:
        raise InvalidParams("a number is too large to be represented") from None
    except msgspec.DecodeError:
        raise ParseFailure from None


def plain(*identifiers: str) -> bool:
    """Quickly: may these be ids? False sends the request to the reader, which knows exactly."""
    for identifier in identifiers:
        if identifier and (len(identifier) > MAX_ID or not identifier.isprintable()):
            return False
    return True


def text(sheet: Sheet, value: Any, path: str) -> str:
    if isinstance(value, str):
        return value
    sheet.expected(path, "a string", value)
    return ""


def ident(sheet: Sheet, value: Any, path: str) -> str:
    """An id from outside: short, and free of what would break a line of a log or a stream."""
    found = text(sheet, value, path)
    if len(found) > MAX_ID:
        sheet.wrong(path, f"must be at most {MAX_ID} characters")
    elif _CONTROL.search(found):
        sheet.wrong(path, "must not contain control characters")
    return found


def flag(sheet: Sheet, value: Any, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if sheet.query:
        if value in ("true", "false"):
            return value == "true"
        sheet.wrong(path, "must be true or false")
    else:
        sheet.expected(path, "a boolean", value)
    return False


def integer(low: int, high: int = _INT32) -> Read:
    def read(sheet: Sheet, value: Any, path: str) -> int:
        number: int | None = None
        if isinstance(value, int) and not isinstance(value, bool):
            number = value
        elif (isinstance(value, float) and value.is_integer()) or (
            isinstance(value, str) and _INTEGER.fullmatch(value)
        ):
            number = int(float(value))
        if number is None:
            sheet.wrong(path, "must be an integer")
            return low
        if not low <= number <= high:
            sheet.wrong(path, f"must be {f'between {low} and {high}' if high != _INT32 else f'at least {low}'}")
            return low
        return number

    return read


def choice(names: Mapping[str, Enum | None], numbers: Mapping[int, Enum | None]) -> Read:
    """An enum by name or number. None is the unspecified value: the same as absent."""
    known = ", ".join(name for name, member in names.items() if member is not None)

    def read(sheet: Sheet, value: Any, path: str) -> Enum | None:
        if isinstance(value, str) and value in names:
            return names[value]
        if isinstance(value, int) and not isinstance(value, bool) and value in numbers:
            return numbers[value]
        if isinstance(value, str | int | float):
            sheet.wrong(path, f"{str(value)[:50]!r} is not a known value; use one of {known}")
        else:
            sheet.expected(path, "a string", value)
        return None

    return read


def decode_base64(value: str) -> bytes | None:
    """Standard or URL-safe alphabet, padded or not; None for anything else."""
    standard = value.translate({45: 43, 95: 47}).rstrip("=")
    try:
        return b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (Base64Error, ValueError):
        return None


def base64(sheet: Sheet, value: Any, path: str) -> bytes:
    found = decode_base64(text(sheet, value, path))
    if found is None:
        sheet.wrong(path, "must be base64")
        return b""
    return found


def instant(sheet: Sheet, value: Any, path: str) -> str:
    """A point in time with its zone, given back in UTC with what precision it had, up to microseconds."""
    match = _INSTANT.fullmatch(text(sheet, value, path))
    if match:
        day, hour, fraction, zone = match.groups()
        try:
            moment = datetime.fromisoformat(f"{day}T{hour}{(fraction or '')[:7].ljust(7, '0') if fraction else ''}")
            if zone not in ("Z", "z"):
                sign = 1 if zone[0] == "+" else -1
                offset = sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
                moment = moment.replace(tzinfo=timezone(offset)).astimezone(UTC).replace(tzinfo=None)
            return moment.isoformat() + "Z"
        except (ValueError, OverflowError):
            pass
    sheet.wrong(path, "must be an ISO 8601 time with its zone, such as 2026-02-03T04:05:06Z")
    return ""


def anything(sheet: Sheet, value: Any, path: str) -> Any:
    return value


def mapping(sheet: Sheet, value: Any, path: str) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    sheet.expected(path, "an object", value)
    return None


def many(read: Read) -> Read:
    """An array of what `read` reads, not longer than the limit. In a query: separated by commas."""

    def read_all(sheet: Sheet, value: Any, path: str) -> tuple[Any, ...]:
        if sheet.query and isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list):
            sheet.expected(path, "an array", value)
            return ()
        items = cast("list[Any]", value)
        if len(items) > sheet.wire.max_parts:
            sheet.wrong(path, f"must have at most {sheet.wire.max_parts} items")
            return ()
        return tuple(read(sheet, item, f"{path}[{place}]") for place, item in enumerate(items))

    return read_all


class Field(NamedTuple):
    """A member of a record: its name here, the caller's name for it (and others that are taken), how it is read."""

    attr: str
    name: str
    read: Read
    required: bool = False
    also: tuple[str, ...] = ()
    nullable: bool = False
    empty: bool = False  # required, but may be empty


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: "_" + match.group(1).lower(), name)


def _nothing(sheet: Sheet, path: str, found: dict[str, Any]) -> None:
    return None


def one_content(*names: str) -> Check:
    """A part holds exactly one of these members. Of `data` null is a value too."""
    *others, last = names

    def check(sheet: Sheet, path: str, found: dict[str, Any]) -> None:
        chosen = [name for name in names if name in found]
        if len(chosen) > 1 and found.get("data", chosen) is None:
            # Writers that print every member as null mean «absent» here; a lone null is content.
            del found["data"]
            chosen.remove("data")
        if len(chosen) != 1:
            given = " and ".join(chosen) or "none"
            sheet.wrong(path, f"must have exactly one of {', '.join(others)} and {last}; has {given}")

    return check


def record(build: Callable[..., Any], *fields: Field, check: Check = _nothing) -> Read:
    """An object. `check` sees what was read, under the names `build` takes, and may mend it or write faults.

    Answers None when the object is unusable; the fault is on the sheet then.
    """
    table = tuple(
        (field, tuple(each for name in (field.name, *field.also) for each in (name, snake(name)))) for field in fields
    )

    def read(sheet: Sheet, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            sheet.expected(path, "an object", value)
            return None
        members = cast("dict[str, Any]", value)
        before = sheet.faults
        found: dict[str, Any] = {}
        for field, names in table:
            place = f"{path}.{field.name}" if path else field.name
            name = next((name for name in names if members.get(name) is not None), None)
            if name is not None:
                start = sheet.faults
                got = field.read(sheet, members[name], place)
                if name == field.name and members.get(names[1], members[name]) not in (members[name], None):
                    sheet.wrong(place, f"is given differently as {names[1]}")
                if got is not None:
                    found[field.attr] = got
                if field.required and not field.empty and not got and sheet.faults == start:
                    sheet.wrong(place, "must not be empty")
            elif field.nullable and any(name in members for name in names):
                found[field.attr] = None
            elif field.required:
                sheet.wrong(place, "is required")
        if sheet.faults == before:
            check(sheet, path, found)
        return build(**found) if sheet.faults == before else None

    return read


def finish(sheet: Sheet, value: Any) -> Any:
    """The value if nothing was wrong; all that was wrong otherwise."""
    if sheet.violations:
        raise InvalidParams(sheet.violations)
    return value
