"""An OpenID provider on loopback: a real HTTP server whose keys rotate, and which can be made to misbehave."""

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.auth.minting import AUDIENCE, Pair, claims, mint, pair

DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"


class Provider:
    """`asked` are the paths that were requested. `answers` replace what would be answered at a path: a status, headers
    and a body. `slow` holds answers back until it is set again."""

    def __init__(self, base: str) -> None:
        self.issuer = base
        self.keys: list[Pair] = [pair("k1")]
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.gate = threading.Event()
        self.gate.set()

    def rotate(self, alg: str = "ES256", *, keep: bool = True) -> Pair:
        """Sign with a new key from now on."""
        made = pair(f"k{len(self.asked)}-{time.monotonic_ns()}", alg)
        self.keys = [made, *(self.keys if keep else [])]
        return made

    def token(self, subject: str = "alice", **changed: Any) -> str:
        given = claims(None, **{"iss": self.issuer, "aud": AUDIENCE, "sub": subject, **changed})
        return mint(self.keys[0], given)

    def count(self, path: str = KEYS) -> int:
        return self.asked.count(path)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        self.gate.wait(10)
        if path in self.answers:
            return self.answers[path]
        if path == DISCOVERY:
            return 200, {}, json.dumps({"issuer": self.issuer, "jwks_uri": f"{self.issuer}{KEYS}"}).encode()
        if path == KEYS:
            return 200, {}, json.dumps({"keys": [key.jwk() for key in self.keys]}).encode()
        return 404, {}, b""


@contextmanager
def providing() -> Generator[Provider]:
    """A provider while the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    provider = server.provider = Provider(f"http://127.0.0.1:{server.server_port}")  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.gate.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, headers, body = self.server.provider.answer(self.path)  # pyright: ignore[reportAttributeAccessIssue]
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # whoever asked has heard enough

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: tests say what they look at."""
