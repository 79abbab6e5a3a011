"""One structured line per request, when asked for. `app` decides how it looks."""

import logging
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from dragoman.model.tasks import View
from dragoman.wire.exchange import Exchange

log = logging.getLogger("dragoman.request")

LEFT = 499  # what nginx made the custom


class Record:
    __slots__ = ("_extra", "_line", "_started")

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._started = perf_counter()
        client = scope.get("client")
        # Neither query nor headers: both may carry credentials.
        self._line = f"{scope['method']} {scope['path'][:200]}"
        self._extra: dict[str, Any] = {"client": client[0] if client else ""}

    def about(self, exchange: Exchange, result: Any) -> None:
        extra = self._extra
        extra["a2a.method"] = exchange.method
        extra["a2a.dialect"] = exchange.dialect
        if isinstance(result, View):
            task = result.task
            extra["a2a.task.id"] = task.id
            extra["a2a.context.id"] = task.context_id
            if task.status is not None and task.status.state is not None:
                extra["a2a.task.state"] = task.status.state.value
        elif (ref := getattr(result, "ref", None)) is not None:
            extra["a2a.task.id"] = ref.id
            extra["a2a.context.id"] = ref.context_id

    def left(self) -> None:
        """The client went away before its answer was whole."""
        self.done(LEFT)

    def done(self, status: int) -> None:
        duration = round((perf_counter() - self._started) * 1000, 3)
        log.info(self._line, extra=self._extra | {"status": status, "duration_ms": duration})
