"""Server-sent events: what one line may hold."""

# Valid in JSON, but some readers split lines at them as if they were line ends.
_BREAKS = (("\u0085", b"\\u0085"), ("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"))
_ESCAPES = tuple((char.encode(), escape) for char, escape in _BREAKS)


def one_line(payload: bytes) -> bytes:
    """The same JSON, on what every reader takes for one line."""
    if not payload.isascii():
        for char, escape in _ESCAPES:
            if char in payload:
                payload = payload.replace(char, escape)
    return payload


def error_frame(body: bytes) -> bytes:
    return b"event: error\ndata: %b\n\n" % one_line(body)
