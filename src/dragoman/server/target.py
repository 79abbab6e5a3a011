"""What a request is about: its path below wherever we are mounted."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote


def below(scope: Mapping[str, Any]) -> str:
    """The path under `root_path`, percent-encoded as it came where the host kept it so."""
    root: str = scope.get("root_path", "")
    raw: bytes = scope.get("raw_path") or b""
    if raw:
        path = raw.partition(b"?")[0].decode("latin-1")  # some hosts leave the query in
        if not root or root == "/":
            return path
        for prefix in (root, quote(root)):
            if _under(path, prefix):
                return path[len(prefix.rstrip("/")) :] or "/"
    path = scope["path"]
    if root and _under(path, root):
        path = path[len(root.rstrip("/")) :]
    return quote(path, safe="/:@!$&'()*+,;=~") or "/"


def _under(path: str, prefix: str) -> bool:
    """Whether the path lies below; a host may also strip the prefix itself."""
    bare = prefix.rstrip("/")
    return path == bare or path.startswith(f"{bare}/")
