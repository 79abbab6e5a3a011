"""Dialects and bindings: bytes in, operations out; values in, bytes out.

Pure, and the only place that knows a dialect.
"""
