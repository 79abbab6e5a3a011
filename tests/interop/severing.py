"""A wire that breaks: forwards bytes between a client and the server, and cuts the connection once, in mid-stream."""

import socket
import threading
from contextlib import closing
from types import TracebackType


class Severing:
    """Listens on a loopback port and forwards to `target`. The first answer in which `mark` passes by is cut off right
    behind it, with a reset, as when a network drops. Everything after that is forwarded untouched."""

    def __init__(self, target: int, mark: bytes) -> None:
        self._target = target
        self._mark = mark
        self._armed = threading.Lock()  # whoever gets it does the one cut
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.cut = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "Severing":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._open):
            _shut(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed: the test is over
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open |= {client, server}
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                server.sendall(data)
        except OSError:
            pass
        _shut(server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        seen = b""
        try:
            while data := server.recv(65536):
                client.sendall(data)
                seen = (seen + data)[-4096 - len(data) :]
                if self._mark in seen and self._armed.acquire(blocking=False):
                    # Lingering for no time at all turns the close into a reset.
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
                    self.cut.set()
                    break
        except OSError:
            pass
        _shut(client)
        _shut(server)


def _shut(one: socket.socket) -> None:
    with closing(one):
        try:
            one.shutdown(socket.SHUT_RD)
        except OSError:
            pass
