"""How deep a JSON text nests, found without decoding it.

Decoders recurse, so depth is judged before one runs. The scan is a handful of passes at memory speed; the text of
an ordinary request is accepted by counting alone.
"""

import re

_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_ROUND = bytes.maketrans(b"{}", b"[]")
_STRING = re.compile(rb'"[^"]*"?')


def deeper_than(text: bytes, limit: int) -> bool:
    """True if arrays and objects nest more than `limit` deep. Malformed text gets an answer too."""
    if text.count(b"{") + text.count(b"[") <= limit:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # An adjacent pair of quotes either is an empty string or joins two strings: both leave brackets where they were.
    marks = _STRING.sub(b"", text.translate(_ROUND, _NOT_STRUCTURE).replace(b'""', b""))
    for level in range(limit):
        # A decoder stops at the first bracket that closes nothing.
        if not marks or marks[:1] == b"]":
            return False
        inner = marks.replace(b"[]", b"")
        if len(inner) == len(marks):
            return level + marks.count(b"[") > limit
        marks = inner
    return bool(marks)
