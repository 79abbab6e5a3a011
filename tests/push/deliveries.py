"""Deliveries as a store would answer them."""

import itertools
from typing import Any

from dragoman.model.facts import Said
from dragoman.model.operations import PushConfig
from dragoman.model.tasks import Scope, TaskState, TaskStatus
from dragoman.ports import Delivery, Hook

SCOPE = Scope("agent")
WORKING = Said(at=1, status=TaskStatus(state=TaskState.WORKING))
_numbers = itertools.count(1)


def delivery(url: str = "https://desk.example/hook?key=q", attempts: int = 0, **config: Any) -> Delivery:
    hook = Hook(uid="u1", scope=SCOPE, config=PushConfig(id="c1", task_id="t1", url=url, **config))
    id = f"d{next(_numbers)}"
    return Delivery(id=id, hook=hook, task_id="t1", context_id="x1", seq=3, fact=WORKING, due=0, attempts=attempts)
