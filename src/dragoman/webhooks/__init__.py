"""The other end of webhooks: for whoever wants to be told, instead of asking or streaming."""

from dragoman.model.news import News
from dragoman.webhooks.receiver import Answer, Receiver

__all__ = ["Answer", "News", "Receiver"]
