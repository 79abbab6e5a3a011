"""Calling others: one POST at a time to an address that was checked and then pinned.

poster      a POST from its URL to its answer: deadlines, connections kept for the next one
dialler     resolve, check every address, connect to a checked one; TLS, the configured proxy
exchange    one connection: HTTP/1.1 written by hand, read by httptools, bounded in every direction
resolver    the system's name resolution, bounded
"""
