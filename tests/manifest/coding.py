"""coding-agent-a2a: its page, sentence by sentence, and what its users try first.

`000-c…` are the things tried first, `000-d…` what we decided where the page leaves room.
"""

from tests.manifest.requirement import Requirement

_CLI = "coding CLIs"

REQUIREMENTS: tuple[Requirement, ...] = (
    # what it is, and the card
    Requirement("000-1", "It speaks A2A 0.3.0 in the shapes its clients were written for"),
    Requirement("000-2", "GET /.well-known/agent-card.json returns the agent card"),
    Requirement("000-3", "POST /a2a/jsonrpc takes every method, as JSON-RPC 2.0"),
    Requirement("000-4", "The card holds the page's members: names, versions, url of the mount, capabilities, modes"),
    Requirement("000-5", "The card's only skill is code-task, with the page's words, tags, modes and examples"),
    Requirement("000-6", "The card's name reflects the adapter"),
    Requirement("000-7", "It listens on port 41242 by default"),
    Requirement("000-8", "Requests and responses are JSON-RPC 2.0 envelopes; a response has a result or an error"),
    # calls
    Requirement("000-9", "message/send waits until the task has ended"),
    Requirement(
        "000-10", "It answers the task in its final state: kind, ids, status with its time, artifacts, history"
    ),
    Requirement("000-11", "message/stream answers with server-sent events"),
    Requirement("000-12", "A stream's data lines are those of the page, member for member in its order"),
    Requirement("000-13", "A stream closes after the event that says final: true"),
    Requirement("000-14", "tasks/get with taskId answers the task as it stands, also while it works"),
    Requirement("000-15", "tasks/get of an unknown task is error -32001 TaskNotFound"),
    Requirement("000-16", "tasks/cancel with taskId ends a task in progress as canceled"),
    Requirement("000-17", "A cancelled CLI gets SIGTERM at once", pending=_CLI),
    Requirement("000-18", "tasks/cancel of a completed, failed or canceled task changes nothing and is no error"),
    # what the agent does, as clients see it
    Requirement("000-19", "A task that begins is told as a status update: working, always"),
    Requirement("000-20", "A known model or session is told in an artifact called agent-metadata"),
    Requirement("000-21", "Text is told as assistant-response with append: true; chunks build up one answer"),
    Requirement("000-22", "The use of a tool is told while working: Using tool: and its name"),
    Requirement("000-23", "A tool's result is told while working"),
    Requirement(
        "000-24", "A task that is done says completed, final: true, after the artifact result with its summary"
    ),
    Requirement("000-25", "What was used is told in an artifact called result"),
    Requirement("000-26", "An error says failed, final: true, with the error's text"),
    Requirement("000-27", "A question says input-required, is not final, and the stream stays open"),
    Requirement("000-28", "Another message answers it, and the stream goes on"),
    Requirement("000-29", "After the answer the task is working again, and then whatever it comes to"),
    Requirement("000-30", "A CLI that exits with 0 after its done event completes the task", pending=_CLI),
    Requirement("000-30b", "A CLI that exits with another status fails the task", pending=_CLI),
    Requirement("000-30c", "A CLI that takes too long or falls silent fails the task", pending=_CLI),
    Requirement(
        "000-30e",
        "What a CLI prints becomes these frames; a tool's result is cut after 200 characters",
        pending=_CLI,
    ),
    Requirement("000-30d", "With AGENT_FORCE=false the CLI may ask, and the task waits for the answer", pending=_CLI),
    Requirement("000-31", "message/send with the same contextId and no taskId carries the answer"),
    Requirement("000-32", "The answer is written to the standard input of the CLI that asked", pending=_CLI),
    # errors
    Requirement("000-33", "A body that is no JSON is -32700 Parse error"),
    Requirement("000-34", "A request without its JSON-RPC fields is -32600 Invalid request"),
    Requirement("000-35", "An unknown method is -32601 Method not found"),
    Requirement("000-36", "tasks/get or tasks/cancel of an unknown task is -32001 TaskNotFound"),
    Requirement("000-37", "The page's curl command streams"),
    # tried first
    Requirement("000-c1", "The card answers 200 with protocolVersion 0.3.0, one skill, the adapter in its name"),
    Requirement(
        "000-c2", "A send ends completed, with the joined text as assistant-response and the summary in result"
    ),
    Requirement("000-c3", "A stream tells in order: working, metadata, text, tools, result, completed; then closes"),
    Requirement("000-c4", "tasks/get by taskId and by id answers the same task; an unknown one is -32001"),
    Requirement("000-c5", "tasks/cancel of a long task answers canceled, and again when asked again"),
    Requirement("000-c5b", "The cancelled child is gone within 2 s, even if it ignores SIGTERM", pending=_CLI),
    Requirement("000-c6", "A question is answered with y in the same context, and the task completes"),
    Requirement("000-c6b", "A CLI's own prompt becomes the question, and the CLI reads the answer", pending=_CLI),
    Requirement("000-c7", "A CLI that exits with 3 fails the task with: agent exited with code 3", pending=_CLI),
    Requirement("000-c7b", "AGENT_TIMEOUT_MS fails a CLI that sleeps", pending=_CLI),
    Requirement("000-c7c", "AGENT_IDLE_EXIT_MS fails a CLI that falls silent", pending=_CLI),
    Requirement("000-c8", "not json is -32700, {} is -32600, method foo is -32601"),
    Requirement("000-c9", "An unknown adapter ends the start with a list of the known ones", pending=_CLI),
    Requirement("000-c9b", "A missing binary ends the start with its name", pending=_CLI),
    Requirement("000-c10", "Over MCP a job is run, polled until done, and forgotten after its result", pending=_CLI),
    # decided
    Requirement(
        "000-d1", "Superset frames are official responses with the page's members; they tell what the task holds"
    ),
    Requirement("000-d2", "A blocking send answers at the question; a stream nobody answers ends after its patience"),
    Requirement("000-d3", "id and taskId that differ are refused with -32602"),
    Requirement("000-d4", "The context alone answers only one open question; of several, the error names them"),
    Requirement("000-d5", "Questions outlive the process and are answered after it; broken streams are taken up again"),
    Requirement("000-d6", "tasks/resubscribe to a finished task answers the task, once"),
    Requirement("000-d7", "Errors carry the name of what they are beside the number; to the letter they do not"),
)
