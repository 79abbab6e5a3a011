"""The clients of the five systems, reduced to what they put on the wire: one socket per request, nothing hidden.

Nothing here sleeps: a call waits for its answer and a stream for its next event, each at most `WAIT` seconds.
"""

import http.client
import itertools
import json
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

WAIT = 20.0
JSON = dict[str, Any]
_numbers = itertools.count(1)


class Answer(NamedTuple):
    """A whole response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Frame(NamedTuple):
    """One event: its lines as they stood on the wire, and the fields in them. A line that is no field is in `lines`
    alone."""

    lines: tuple[str, ...]
    id: str
    event: str
    data: str

    def json(self) -> Any:
        return json.loads(self.data)


def _dial(base: str) -> http.client.HTTPConnection:
    where = urlsplit(base)
    return http.client.HTTPConnection(where.hostname or "", where.port, timeout=WAIT)


def _headers(body: bytes | None, more: Mapping[str, str] | None) -> dict[str, str]:
    return ({} if body is None else {"Content-Type": "application/json"}) | dict(more or {})


def _head(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def ask(base: str, verb: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """Any request, answered whole."""
    with closing(_dial(base)) as connection:
        connection.request(verb, path, body, _headers(body, headers))
        response = connection.getresponse()
        return Answer(response.status, _head(response), response.read())


def envelope(method: str, params: Any, id: Any = None) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": next(_numbers) if id is None else id, "method": method, "params": params}
    ).encode()


def call(
    base: str, path: str, method: str, params: Any, *, id: Any = None, headers: Mapping[str, str] | None = None
) -> Any:
    """The result of a JSON-RPC call that succeeds."""
    answer = ask(base, "POST", path, envelope(method, params, id), headers)
    body = answer.json()
    assert answer.status == 200 and "result" in body, f"{answer.status}: {body}"
    return body["result"]


def refusal(base: str, path: str, method: str, params: Any, *, headers: Mapping[str, str] | None = None) -> JSON:
    """The error of a JSON-RPC call that is refused, in an answer with status 200."""
    answer = ask(base, "POST", path, envelope(method, params), headers)
    body = answer.json()
    assert answer.status == 200 and "error" in body and "result" not in body, f"{answer.status}: {body}"
    return body["error"]


class Stream:
    """An open stream, read event by event. `comments` and `cursor` are those of what was read so far."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = _head(response)
        self.comments: list[str] = []
        self.cursor = ""

    def next(self) -> Frame | None:
        """The next event, or block of lines without a field; None once the server has ended the stream.

        Raises TimeoutError when nothing comes within `WAIT`, but for comments.
        """
        lines: list[str] = []
        end = time.monotonic() + WAIT
        while raw := self._response.readline():
            line = raw.decode().removesuffix("\n").removesuffix("\r")
            if line.startswith(":"):
                self.comments.append(line)
                if time.monotonic() > end:
                    raise TimeoutError("nothing but comments came")
            elif line:
                lines.append(line)
            elif lines:
                break
        return self._frame(lines) if lines else None

    def until(self, wanted: Callable[[Frame], bool]) -> list[Frame]:
        """Events up to and with the first that is wanted. The stream stays open for more."""
        found: list[Frame] = []
        while (frame := self.next()) is not None:
            found.append(frame)
            if wanted(frame):
                return found
        raise AssertionError(f"the stream ended without it: {[each.data for each in found]}")

    def rest(self) -> list[Frame]:
        """Events until the server ends the stream."""
        found: list[Frame] = []
        while (frame := self.next()) is not None:
            found.append(frame)
        return found

    def _frame(self, lines: list[str]) -> Frame:
        fields = [line.partition(":") for line in lines if ":" in line.split(" ")[0]]
        values = [(name, value.removeprefix(" ")) for name, _, value in fields]
        frame = Frame(
            tuple(lines),
            next((value for name, value in values if name == "id"), ""),
            next((value for name, value in values if name == "event"), ""),
            "\n".join(value for name, value in values if name == "data"),
        )
        self.cursor = frame.id or self.cursor
        return frame


@contextmanager
def opened(
    base: str, verb: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Generator[Stream]:
    """Any request that is answered with a stream. Leaving the block hangs up; other calls may go on meanwhile."""
    with closing(_dial(base)) as connection:
        connection.request(verb, path, body, _headers(body, {"Accept": "text/event-stream"} | dict(headers or {})))
        with closing(connection.getresponse()) as response:
            yield Stream(response)


@contextmanager
def streaming(
    base: str, path: str, method: str, params: Any, *, id: Any = None, headers: Mapping[str, str] | None = None
) -> Generator[Stream]:
    """A JSON-RPC call that streams."""
    with opened(base, "POST", path, envelope(method, params, id), headers) as stream:
        assert stream.status == 200, stream.status
        assert stream.headers["content-type"].split(";")[0] == "text/event-stream", stream.headers
        yield stream


# --- comparing with a page ------------------------------------------------------------------------------------

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shown(text: str | bytes, **known: str) -> str:
    """The text as a page would show it: each known value as `<its name>`, other ids as `<id>`, times as `<time>`."""
    text = text.decode() if isinstance(text, bytes) else text
    for name, value in known.items():
        text = text.replace(value, f"<{name.replace('_', '-')}>")
    return _UUID.sub("<id>", _TIME.sub("<time>", text))
