"""Log lines: for people on a terminal, JSON otherwise. One record is one line, and none holds a secret.

Whatever a record brings in `extra` becomes a field; ours are `a2a.method`, `a2a.task.id`, `a2a.context.id`,
`a2a.task.state`, `a2a.dialect` and `duration_ms`. Clients choose many of these values, so both formats keep them
from starting a line of their own.
"""

import logging
import os
import re
import sys
import time
from typing import Any, TextIO

import msgspec

STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "color_message"}
"""What every record has. Anything else came in `extra`. (uvicorn repeats its messages as `color_message`.)"""

SECRET_NAME = re.compile(
    r"authorization|cookie|credential|passw(or)?d|secret|token|api[-_.]?key|private[-_.]?key|signature", re.IGNORECASE
)
COUNTS = frozenset({"input_tokens", "output_tokens"})  # tokens of the other kind
SECRET_TEXT = re.compile(
    r"""(?ix)
    \b(?P<scheme>bearer|basic)\s+[\w.~+/=-]{6,}                                         # an Authorization header
    | (?P<url>\w+://[^\s/:@]*:)[^\s/@]+(?=@)                                            # a password in a URL
    | (?P<pair>\b[\w.-]*(?:passw(?:or)?d|secret|token|api[-_]?key|signature)["']?\s*[=:]\s*["']?)[^\s"'&,;}]+
    """
)
# What ends a line for some reader, and what drives a terminal.
CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x0A: "\\n",
    0x0D: "\\r",
    0x09: "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}

COLOURS = {"debug": "2", "info": "36", "warning": "33", "error": "31", "critical": "1;31"}


def plain(text: str) -> str:
    """Text that stays on its line and leaves the terminal alone."""
    return text.translate(CONTROL)


def redact(text: str) -> str:
    """Text without what looks like a credential. A safety net: nobody should log one to begin with."""
    return SECRET_TEXT.sub(_veil, text)


def _veil(match: re.Match[str]) -> str:
    kept = match["scheme"] or match["url"] or match["pair"] or ""
    return f"{kept} ***" if match["scheme"] else f"{kept}***"


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """The record's own fields, secrets veiled by name and by look."""
    found: dict[str, Any] = {}
    for name, value in vars(record).items():
        if name in STANDARD or value is None or value == "":
            continue
        if name not in COUNTS and SECRET_NAME.search(name):
            found[name] = "***"
        elif isinstance(value, bool | int | float):
            found[name] = value
        else:
            found[name] = redact(str(value))
    return found


class HumanFormatter(logging.Formatter):
    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        word = f"\x1b[{COLOURS.get(level, '0')}m{level:<7}\x1b[0m" if self._colour else f"{level:<7}"
        line = f"{clock} {word} {plain(redact(record.getMessage()))}"
        for name, value in fields(record).items():
            line += f"  {plain(name)}={plain(str(value))}"
        for extra in self._traceback(record):
            # Indented, so that no line of an exception's text can pass for a record.
            line += f"\n    {plain(extra)}"
        return line

    def _traceback(self, record: logging.LogRecord) -> list[str]:
        text = self.formatException(record.exc_info) if record.exc_info else (record.exc_text or "")
        return redact(text).splitlines() if text else []


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        line |= {name: value for name, value in fields(record).items() if name not in line}
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return _json(line)


def _json(line: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(line).decode()
    except UnicodeEncodeError:  # a lone surrogate somewhere: shown as an escape rather than lost
        safe = {name: _whole(value) for name, value in line.items()}
        return msgspec.json.encode(safe).decode()


def _whole(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def configure(level: str = "info", format: str = "auto", stream: TextIO | None = None) -> None:
    """Send this process's records to `stream` (stderr). Only `serve` and the command call this; a host that mounts
    `asgi()` keeps its own logging."""
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    human = terminal if format == "auto" else format == "human"
    colour = terminal and not os.environ.get("NO_COLOR")
    handler = logging.StreamHandler(out)
    handler.setFormatter(HumanFormatter(colour=colour) if human else JsonFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    number: int = getattr(logging, level.upper())
    # Other people's libraries speak up when something is wrong; their chatter is for who asked for all of it.
    root.setLevel(number if level == "debug" else max(number, logging.WARNING))
    logging.getLogger("dragoman").setLevel(number)
