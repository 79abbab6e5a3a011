"""Webhooks: who may be called, and the calls.

screen      whether a URL may be called, asked before a hook is kept
"""
