"""The tests of the five systems read what is on the wire, to the line."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.seeds.calling import ask, call, refusal, shown, streaming

BODY = (b': hello\n\nid: a.1\r\ndata: {"n":1}\r\n\r\n', b'event: odd\ndata: {"n":2}\n\n[DONE]\n', b"\n")


class Script(BaseHTTPRequestHandler):
    """Repeats a call's parameters; refuses `no`; streams BODY, the last piece once `go` has been called."""

    protocol_version = "HTTP/1.1"
    told = threading.Event()

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if said["method"] == "stream":
            self._stream()
            return
        if said["method"] == "go":
            self.told.set()
        outcome = {"error": {"code": 1}} if said["method"] == "no" else {"result": said["params"]}
        body = json.dumps({"id": said["id"], **outcome}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in BODY:
            if piece is BODY[-1]:
                self.told.wait(10)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def base() -> Iterator[str]:
    Script.told = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Script) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_stream_is_read_line_by_line_while_another_call_is_made(base: str) -> None:
    with streaming(base, "/", "stream", {}) as stream:
        first, second = stream.until(lambda frame: frame.event == "odd")
        assert call(base, "/", "go", {"x": 1}) == {"x": 1}
        (last,) = stream.rest()
    assert (first.id, first.json(), first.lines) == ("a.1", {"n": 1}, ("id: a.1", 'data: {"n":1}'))
    assert (second.id, second.json()) == ("", {"n": 2})
    assert (last.lines, last.data) == (("[DONE]",), "")
    assert stream.comments == [": hello"] and stream.cursor == "a.1"


def test_a_result_and_a_refusal_are_not_taken_for_each_other(base: str) -> None:
    assert refusal(base, "/", "no", {}) == {"code": 1}
    with pytest.raises(AssertionError):
        call(base, "/", "no", {})
    with pytest.raises(AssertionError):
        refusal(base, "/", "yes", {})
    assert ask(base, "POST", "/", b'{"id":7,"method":"yes","params":[]}').json() == {"id": 7, "result": []}


def test_ids_and_times_are_shown_by_name() -> None:
    text = b'{"id":"0199c7a2-1111-7000-8000-000000000001","at":"2026-05-10T18:00:00.001Z","of":"t-1"}'
    assert shown(text, of="t-1") == '{"id":"<id>","at":"<time>","of":"<of>"}'
