"""How deep a JSON text nests and how much it holds, found without decoding it.

Decoders recurse, so depth is judged before one runs; and a few megabytes of brackets are millions of objects. The scan
is a handful of passes at memory speed, and the text of an ordinary request is accepted by counting alone.
"""

import re

_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_ROUND = bytes.maketrans(b"{}", b"[]")
_STRING = re.compile(rb'"[^"]*"?')
_RUN = re.compile(rb"\[+|\]+")
_OPEN = ord("[")
# Peeling off the innermost level costs one pass whatever the shape. What survives a few peels is deep everywhere, so it
# has few runs of brackets left to walk.
_PEELS = 8


def strain(text: bytes, depth: int, containers: int) -> str:
    """Why a decoder should be spared this text, or "". Malformed text gets an answer too; the decoder refuses it."""
    if text.count(b"{") + text.count(b"[") <= depth:
        return ""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # An adjacent pair of quotes either is an empty string or joins two strings: both leave brackets where they were.
    marks = _STRING.sub(b"", text.translate(_ROUND, _NOT_STRUCTURE).replace(b'""', b""))
    if marks.count(b"[") > containers:
        return f"The body holds more than {containers} arrays and objects"
    return f"The body nests deeper than {depth} levels" if _deeper_than(marks, depth) else ""


def _deeper_than(marks: bytes, limit: int) -> bool:
    peeled = 0
    while peeled < min(limit, _PEELS):
        inner = marks.replace(b"[]", b"")
        if len(inner) == len(marks):
            break
        marks = inner
        peeled += 1
    opened = 0
    for run in _RUN.finditer(marks):
        span = run.end() - run.start()
        opened += span if marks[run.start()] == _OPEN else -span
        # A decoder stops at the first bracket that closes nothing.
        if opened < 0 or opened + peeled > limit:
            return opened > 0
    return False
