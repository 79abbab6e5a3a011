"""Foreign clients as seen from a test: a process in an environment of its own that does one operation per line."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.app.profiles import PRESETS
from tests import environments

HERE = Path(__file__).resolve().parent
PATIENCE = 60.0  # a driver gives up on an operation long before


class Party(NamedTuple):
    """One client, in one version, over one binding; at a mount, or at the one that a profile's card names first."""

    name: str
    binding: str
    profile: str = ""
    mount: str = ""

    @property
    def version(self) -> str:
        """The protocol version it speaks to us."""
        return "1.0" if self.name in ("py10", "js10") and not self.binding.endswith("@0.3") else "0.3"

    @property
    def label(self) -> str:
        where = (f"-{self.profile}" if self.profile else "") + self.mount.replace("/", "-")
        return f"{self.name}-{self.binding.lower().replace('http+json', 'rest')}{where}"

    def command(self, base: str) -> tuple[list[str], Path]:
        """What to run, and where."""
        path = self.mount or (PRESETS[self.profile].primary[0] if self.profile else "")
        where = [path] if path else []
        driver, pins = HERE / "drivers" / self.name, HERE / "environments"
        if self.name.startswith("py"):
            interpreter = environments.python(self.name, pins / f"{self.name}.txt")
            return [str(interpreter), f"{driver}.py", base, self.binding, *where], HERE
        project = environments.node_project(self.name, pins / self.name)
        return [str(environments.node()), f"{driver}.mjs", base, self.binding, *where], project


class Refused(Exception):
    """The client raised: its own class, the number it carried (if any), its text."""

    def __init__(self, error: str, code: int | None, text: str) -> None:
        super().__init__(f"{error} {code}: {text}")
        self.error = error
        self.code = code


class Client:
    """Sends operations to a driver. The words are alike for every client; see `drivers/`."""

    def __init__(self, party: Party, base: str, credential: str = "") -> None:
        """`credential` is one of the card's schemes by name, and what to present there."""
        self.party = party
        command, directory = party.command(base)
        quiet = {"PYTHONDONTWRITEBYTECODE": "1", "OTEL_SDK_DISABLED": "true"}
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            env=os.environ | quiet | {"INTEROP_CREDENTIAL": credential},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._said: list[str] = []
        self._readers = [threading.Thread(target=each, daemon=True) for each in (self._read, self._listen)]
        for reader in self._readers:
            reader.start()

    def __call__(self, operation: str, **arguments: Any) -> Any:
        """Run one operation; gives its value, or raises `Refused` with what the client raised."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": operation, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._answers.get(timeout=PATIENCE)
        if line is None:
            raise RuntimeError(f"The {self.party.label} driver ended:\n{''.join(self._said)[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"], answer["code"], answer["text"])
        return answer["value"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)


@contextmanager
def connected(party: Party, base: str, credential: str = "") -> Generator[Client]:
    client = Client(party, base, credential)
    try:
        yield client
    finally:
        client.close()


PARTIES = [
    Party("py10", "JSONRPC"),
    Party("py10", "HTTP+JSON"),
    Party("py10", "JSONRPC@0.3"),
    Party("py10", "HTTP+JSON@0.3"),
    Party("py03", "JSONRPC"),
    Party("py03", "HTTP+JSON"),
    Party("js10", "JSONRPC"),
    Party("js10", "HTTP+JSON"),
    Party("js03", "JSONRPC"),
    Party("js03", "HTTP+JSON"),
    Party("py10", "JSONRPC", "cortex"),
    Party("js10", "JSONRPC", "cortex"),
]
