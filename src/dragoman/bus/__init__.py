"""Bells between writers and followers. Each module is one implementation of `ports.Bus`."""
