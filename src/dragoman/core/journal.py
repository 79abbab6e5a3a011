"""What a parked or crashed turn already did, so that running its handler again repeats nothing.

Everything a handler emits or asks has an ordinal within its turn. A replay swallows emissions up to the last
parked question, answers questions from the log, and takes step results from it. Emissions after that point
were cut off by a crash: they are made again, and an artifact they had begun is restarted whole.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.core.fold import Fold
from dragoman.model.errors import HandlerChanged
from dragoman.model.facts import AnyFact, Asked, Chunk, Received, Resumed, Started, Stepped
from dragoman.model.messages import Artifact, Message

_encode = msgspec.json.Encoder(order="deterministic").encode


def digest(value: Any) -> str:
    """A short fingerprint of anything JSON can hold."""
    return sha256(_encode(value)).hexdigest()[:16]


class Question(Struct):
    """What was asked at an ordinal. `passed` once the turn went on, with an answer or (authorization) without.

    A held question passes only by being answered: a start after it may just as well follow a crash.
    """

    digest: str
    held: bool = False
    answer: Message | None = None
    passed: bool = False


class Journal:
    __slots__ = ("_dirty", "_pile", "delivered", "of", "questions", "steps")

    def __init__(self) -> None:
        self.of = 1
        self.delivered = -1
        self.questions: dict[int, Question] = {}
        self.steps: dict[tuple[str, int], Stepped] = {}
        self._dirty: dict[str, int] = {}
        self._pile: Fold | None = None  # swallowed chunks of artifacts that were cut off; few turns have any

    def remember(self, facts: Iterable[AnyFact]) -> None:
        """Take in the turn's facts, oldest first."""
        for fact in facts:
            if isinstance(fact, Started):
                if fact.attempt == 1:
                    self.of = fact.of
                if self.delivered >= 0 and not self.questions[self.delivered].held:
                    self.questions[self.delivered].passed = True
            elif isinstance(fact, Resumed):
                self.questions[self.delivered].passed = True
            elif isinstance(fact, Stepped):
                self.steps[fact.name, fact.nth] = fact
            elif isinstance(fact, Asked):
                self.questions[fact.n] = Question(fact.digest, fact.hold)
                self.delivered = fact.n
                self._dirty.clear()
            elif isinstance(fact, Received) and fact.answers in self.questions:
                self.questions[fact.answers].answer = fact.message
            elif isinstance(fact, Chunk):
                self._dirty[fact.artifact.artifact_id] = fact.n

    def step(self, name: str, nth: int, arguments: str) -> Stepped | None:
        """The remembered result, if any. Raises HandlerChanged when it was another call."""
        known = self.steps.get((name, nth))
        if known is not None and known.digest != arguments:
            raise HandlerChanged
        return known

    def question(self, n: int, asked: str) -> Question | None:
        """The n-th emission if the turn already went past it as a question, None when it must be asked now.

        Raises HandlerChanged when something else stood there.
        """
        if n > self.delivered:
            return None
        known = self.questions.get(n)
        if known is None or known.digest != asked:
            raise HandlerChanged
        return known if known.passed else None

    def swallows(self, n: int) -> bool:
        """Whether this emission was delivered before the park."""
        if n > self.delivered:
            return False
        if n in self.questions:
            raise HandlerChanged
        return True

    def pile(self, chunk: Chunk) -> None:
        """Keep a swallowed chunk of an artifact that will have to be restarted."""
        if chunk.artifact.artifact_id in self._dirty:
            self._piled().apply(0, chunk)

    def restart(self, chunk: Chunk) -> Chunk:
        """The chunk to emit: the first one of a cut-off artifact carries all of it again, without append."""
        id = chunk.artifact.artifact_id
        if self._dirty.pop(id, None) is None:
            return chunk
        pile = self._piled()
        if not (chunk.append or id in pile.piles):
            return chunk
        pile.apply(0, chunk)
        whole: Artifact = pile.piles.pop(id).artifact()
        return msgspec.structs.replace(chunk, artifact=whole, append=False)

    def _piled(self) -> Fold:
        if self._pile is None:
            self._pile = Fold("", "")
        return self._pile
