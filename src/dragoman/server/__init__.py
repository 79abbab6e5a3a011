"""Bytes in, bytes out: the ASGI application, its connections and its listener."""
