"""The protocol before 0.3: what clients of 0.1 and of 0.2 see at `/`.

`01-…` is 0.1, spoken by nobody's SDK any more; `02-…` is what 0.2 has otherwise than 0.3.
"""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement("01-1", "tasks/send with a type part or a sessionId is 0.1's, and answers a task with a sessionId"),
    Requirement("01-2", "An id nobody knows makes a task of that id"),
    Requirement("01-3", "Without an id or a session the server makes one; null is absent"),
    Requirement("01-4", "Nothing in an answer is later than 0.1: no kind, no messageId, no contextId"),
    Requirement("01-5", "Parts are told apart by type; data may be an array"),
    Requirement("01-6", "Artifacts have their place in the task as index, and their id in the metadata"),
    Requirement("01-7", "History is shown to who asks for it, and only as much"),
    Requirement("01-8", "A send waits for the end or a question"),
    Requirement(
        "01-9", "rejected is told as failed and auth-required as input-required, with the word in the metadata"
    ),
    Requirement("01-10", "A stream has statuses and artifacts and no task; final: true at every end and question"),
    Requirement("01-11", "tasks/resubscribe tells the status, what was made, and what follows; a cursor continues"),
    Requirement("01-12", "A question is answered under the id of its task, also by a stream"),
    Requirement("01-13", "A reply without a task is a completed task"),
    Requirement("01-14", "Errors have its numbers: over -32009, no streams -32006, later ones -32603"),
    Requirement("01-15", "Its names are spoken in 0.1, 0.2, 0.3 and without a version"),
    Requirement("01-16", "Questions and the ids clients chose outlive the process"),
    Requirement(
        "01-17", "The names it shares answer in the words of the task's maker; others may answer its questions"
    ),
    Requirement("01-18", "The card is at /.well-known/agent.json, with name, url, version, capabilities and skills"),
    Requirement("01-19", "tasks/pushNotification/set registers the task's only webhook, also beside a send"),
    Requirement("01-20", "tasks/pushNotification/get answers it, or null"),
    Requirement("01-21", "The webhook is told the task as 0.1 has it"),
    Requirement("01-22", "The card's authentication names the schemes"),
    Requirement("01-23", "An id a client chose is that caller's: another has its own of that name"),
    Requirement("02-1", "0.2 has the names and shapes of 0.3"),
    Requirement("02-2", "Its card is at /.well-known/agent.json"),
    Requirement("02-3", "GET /agent/authenticatedExtendedCard answers the extended card, to who may see it"),
)
