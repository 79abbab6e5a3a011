"""Being told instead of asking: takes the webhooks of any A2A agent, whatever dialect it speaks.

Serve it with `uvicorn examples.receiver:app --port 9000`, and register http://127.0.0.1:9000/ with the token below.
"""

import os

from dragoman import News, Receiver

TOKEN = os.environ.get("WEBHOOK_TOKEN", "made-up-for-this-task")

results: dict[str, str] = {}  # the application's own memory of its tasks


async def told(news: News) -> None:
    """Called once for each piece of news. When it raises, the sender comes again."""
    if not news.over:
        return
    texts = (part.text for artifact in news.task.artifacts for part in artifact.parts)
    results[news.task.id] = "".join(text for text in texts if isinstance(text, str))


app = Receiver(told, token=TOKEN)
