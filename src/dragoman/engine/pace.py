"""Notices handlers that block the event loop: while one does, nobody else is served.

A thread looks at the loop from outside, so handlers that behave pay nothing for being watched.
"""

import asyncio
import logging
import sys
from threading import Event, Thread, get_ident
from time import monotonic
from typing import Any

log = logging.getLogger("dragoman.turn")

Task = asyncio.Task[Any]

LOOKS = 4  # until patience runs out


class Pace:
    """Reports whose handler holds the loop up for longer than `patience` seconds: once, and again when it got twice as
    bad. Say whose task begins and ends; start and stop it on the loop that is to be watched."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._skills: dict[Task, str] = {}
        self._longest: dict[str, float] = {}
        self._needed = Event()  # the thread sleeps while nobody is at work
        self._over = Event()
        self._answered = False
        self._thread: Thread | None = None

    def start(self) -> None:
        watched = (asyncio.get_running_loop(), get_ident())
        self._thread = Thread(target=self._watch, args=watched, name="pace", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._over.set()
            self._needed.set()
            self._thread.join()

    def begin(self, task: Task, skill: str) -> None:
        """This task runs a handler of that skill from now on."""
        self._skills[task] = skill
        if not self._needed.is_set():
            self._needed.set()

    def end(self, task: Task) -> None:
        del self._skills[task]

    def report(self, skill: str, seconds: float, where: str) -> None:
        if seconds >= 2 * self._longest.get(skill, 0):
            self._longest[skill] = seconds
            log.warning(
                "The skill %s has blocked everybody else for %.2f s (%s); await what takes time, or write the skill as "
                "a plain function, which runs in a thread",
                skill,
                seconds,
                where,
            )

    # --- in the thread

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._over.is_set():
            self._needed.wait()
            if self._skills:
                try:
                    self._look(loop, thread)
                except RuntimeError:  # the loop was closed without us
                    return
            else:
                self._needed.clear()
                if self._skills:  # somebody began in between
                    self._needed.set()

    def _look(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        """Ask the loop for a sign of life. Whoever is at work whenever we look, until it comes, holds the loop up."""
        self._answered = False
        loop.call_soon_threadsafe(self._answer)
        asked = monotonic()
        suspects: set[Task | None] = set()
        while not self._over.wait(self._patience / LOOKS) and not self._answered:
            suspects.add(asyncio.current_task(loop))
            seconds = monotonic() - asked
            if seconds >= self._patience and len(suspects) == 1:
                (task,) = suspects
                if task is not None and (skill := self._skills.get(task)) is not None:
                    self.report(skill, seconds, _place(thread))

    def _answer(self) -> None:
        self._answered = True


def _place(thread: int) -> str:
    """What a thread is doing, as far as Python knows."""
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] (it is documented)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "nowhere"
