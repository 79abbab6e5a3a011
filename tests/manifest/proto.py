"""protoAgent: its page, sentence by sentence, and what its users try first.

`004-c…` are the things tried first, `004-d…` what we decided where the page leaves room.
"""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    # the card
    Requirement("004-1", "It listens on port 7870 by default"),
    Requirement("004-2", "GET /.well-known/agent-card.json and /.well-known/agent.json return the card as JSON"),
    Requirement("004-3", "Both return identical content"),
    # calls
    Requirement("004-4", "POST /a2a takes every method, as JSON-RPC 2.0 with the id its caller chose"),
    Requirement("004-5", "message/send waits for the end and answers the whole task with its artifacts"),
    Requirement("004-6", "Messages need no messageId and parts no kind"),
    Requirement("004-7", "metadata.skill chooses the skill"),
    Requirement("004-8", "A result has kind task, ids, status, artifacts, and data with usage and durationMs"),
    Requirement("004-9", "Usage is input, output and total tokens, and the total is their sum"),
    Requirement("004-10", "message/stream tells the same as the run progresses, one event per frame"),
    Requirement("004-11", "Every frame carries its kind"),
    Requirement("004-12", "The first frame is the task in its initial state"),
    Requirement("004-13", "Changes of state are status updates"),
    Requirement("004-14", "A tool's start and end are status updates while working"),
    Requirement("004-15", "The pause for input is a status update with final: true"),
    Requirement("004-16", "Partial output is told in artifact updates"),
    Requirement("004-17", "tasks/get answers the current state of a task"),
    # what is kept
    Requirement("004-18", "A task is kept in the instance's database from its creation on"),
    Requirement(
        "004-19", "Its end is kept too: after a restart tasks/get and tasks/resubscribe answer it, with artifacts"
    ),
    Requirement("004-20", "They answer it after the copy in memory is evicted, which is after an hour"),
    Requirement("004-21", "A finished task is kept for 24 hours"),
    Requirement("004-22", "A task that worked when the process ended is failed: interrupted by server restart"),
    Requirement("004-23", "tasks/resubscribe streams the remaining frames of a task in flight, without losing any"),
    # questions
    Requirement("004-24", "A question is a status update input-required with the question in it; it closes the stream"),
    Requirement("004-25", "The task is parked, not finished, and survives a restart"),
    Requirement("004-26", "Webhooks hear of a question at once"),
    Requirement("004-27", "message/send with the task's id answers it, and the run goes on exactly where it paused"),
    Requirement("004-28", "message/stream with the task's id answers it too"),
    Requirement("004-29", "The run comes to its end, or to another question"),
    Requirement(
        "004-30", "The lead agent's ask_human tool interrupts its graph, which resumes", pending="agent framework"
    ),
    Requirement("004-31", "A message without taskId starts a fresh task"),
    Requirement("004-32", "A message to a task that does not wait for input starts a fresh task"),
    Requirement("004-33", "The card advertises hitl-mode-v1"),
    # cancelling, the extended card
    Requirement("004-34", "tasks/cancel ends a running task as canceled"),
    Requirement("004-35", "tasks/cancel of a finished task changes nothing and is no error"),
    Requirement("004-36", "agent/getAuthenticatedExtendedCard answers the card in the shape of the public one"),
    Requirement("004-37", "It does so after the bearer or the API key was checked"),
    # webhooks
    Requirement("004-38", "tasks/pushNotificationConfig/set registers a webhook of a task"),
    Requirement("004-38b", "tasks/pushNotificationConfig/get, list and delete know it"),
    Requirement("004-39", "It is called for working, each tool step, and the end"),
    Requirement("004-40", "While working, at most every 1.5 s, with the latest state"),
    Requirement("004-41", "At the end, at once"),
    Requirement("004-42", "The call for completed carries the final artifact"),
    Requirement("004-43", "A token is taken at the top level"),
    Requirement("004-44", "Credentials are taken under authentication"),
    Requirement("004-45", "Either makes both Authorization: Bearer and X-A2A-Notification-Token"),
    Requirement("004-46", "Where both are given, the top level wins"),
    Requirement("004-47", "The body is the status update of the stream's matching frame"),
    Requirement("004-48", "A failed delivery is tried again after 1, 3 and 9 s"),
    Requirement("004-49", "What is refused with 4xx is not tried again"),
    Requirement("004-50", "Configs are kept for 24 h, over the task's end and a restart"),
    # HTTP+JSON
    Requirement("004-51", "POST /a2a/tasks/:taskId/pushNotificationConfig sets a webhook"),
    Requirement("004-51b", "GET /a2a/tasks/:taskId/pushNotificationConfig lists the webhooks"),
    Requirement("004-52", "GET /a2a/tasks/:taskId answers what tasks/get answers"),
    Requirement("004-53", "What HTTP+JSON does means the same as over JSON-RPC"),
    Requirement("004-54", "Webhooks set over HTTP+JSON are read and guarded the same"),
    # the guard
    Requirement("004-55", "A webhook's URL is resolved and checked before it is accepted"),
    Requirement("004-56", "Private, loopback and link-local addresses are refused by default"),
    Requirement("004-57", "PUSH_NOTIFICATION_ALLOWED_CIDRS allows address ranges"),
    Requirement("004-58", "PUSH_NOTIFICATION_ALLOWED_HOSTS allows hosts, without asking DNS"),
    # extensions
    Requirement("004-60", "The card's capabilities.extensions declares what the agent implements"),
    # tried first
    Requirement("004-c1", "Both card paths are the same bytes, with hitl-mode-v1 among the extensions"),
    Requirement("004-c2", "A send without kind waits and completes; total tokens are the sum, durationMs is above 0"),
    Requirement("004-c3", "A stream begins with a task, every frame has a kind, the last is final: true"),
    Requirement("004-c4", "Killed in mid-stream and resubscribed, the rest arrives and nothing is lost"),
    Requirement("004-c5", "A question ends the stream and is answered by taskId, also after a restart in between"),
    Requirement("004-c6", "After a restart a working task has failed with the reason; a finished one is still there"),
    Requirement("004-c7", "A running task is canceled; canceled again, it is the same task and no error"),
    Requirement("004-c8", "A webhook sees both headers, whichever way its token was given"),
    Requirement("004-c9", "50 tool steps in 5 s are about 4 calls and the last one with the artifact"),
    Requirement("004-c10", "A webhook that answers 500 is tried after 1, 3 and 9 s; one that answers 404 not"),
    Requirement("004-c11", "A loopback or metadata address is refused until the environment allows it"),
    Requirement("004-c12", "The HTTP+JSON aliases answer"),
    Requirement("004-c13", "With A2A_AUTH_TOKEN set, 401 without it and 200 with it"),
    # decided
    Requirement("004-d1", "Every task result tells usage (zeros when nobody counted) and durationMs"),
    Requirement("004-d2", "What is parked outlives every retention; what memory forgot is read from the file"),
    Requirement("004-d3", "Resubscribing to a finished task answers it once, and closes"),
    Requirement("004-d4", "Questions survive several restarts; a broken stream is taken up to the true end"),
    Requirement("004-d6", "Errors carry the name of what they are beside the number; to the letter they do not"),
    Requirement("004-d5", "A taskId and a contextId that do not belong together are refused with -32602"),
)
