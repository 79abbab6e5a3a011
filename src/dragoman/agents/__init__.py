"""Agents made of Python functions."""

from dragoman.agents.agent import Agent
from dragoman.agents.blocking import SyncTurn
from dragoman.agents.incoming import Incoming, Reply
from dragoman.agents.tools import Tool
from dragoman.agents.turn import Turn

__all__ = ["Agent", "Incoming", "Reply", "SyncTurn", "Tool", "Turn"]
