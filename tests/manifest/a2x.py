"""A2X: its page, sentence by sentence, and what its users try first.

`003-c…` are the things tried first, `003-d…` what we decided where the page leaves room.
"""

from tests.manifest.requirement import Requirement

_PAID = "x402"
_THEIRS = "a class of the JavaScript SDK, which its users bring along"

REQUIREMENTS: tuple[Requirement, ...] = (
    # the wire
    Requirement("003-1", "POST takes every method, as JSON-RPC 2.0 with a method and params"),
    Requirement("003-2", "message/stream answers with server-sent events"),
    Requirement("003-3", "The protocol version is 0.3.0"),
    # the card
    Requirement("003-4", "GET /.well-known/agent.json returns the agent card"),
    Requirement("003-5", "The card has the page's members: name, description, versions, url of the mount, skills"),
    Requirement("003-6", "Its capabilities tell of streaming and of extensions"),
    Requirement("003-6b", "Its securitySchemes tell how to authenticate"),
    # states
    Requirement("003-7", "submitted: the task has been created and is queued"),
    Requirement("003-8", "working: the agent is at it"),
    Requirement("003-9", "completed: it has finished"),
    Requirement("003-10", "input-required: the agent needs more from the client"),
    Requirement("003-11", "failed and canceled: an error, or the client ended it"),
    # methods
    Requirement("003-12", "message/send answers the complete task"),
    Requirement("003-13", "Its response has the page's members; the answer stands in status.message"),
    Requirement("003-14", "A stream's data lines are those of the page, member for member in its order"),
    Requirement("003-15", "tasks/get answers the current state of a task"),
    Requirement("003-16", "tasks/cancel ends a task in progress"),
    # structure
    Requirement("003-17", "A response has a result or an error"),
    Requirement("003-18", "The status message names message, task and context, and has metadata; artifacts are a list"),
    Requirement("003-19", "Parts of text"),
    Requirement("003-20", "Parts of data"),
    Requirement("003-21", "Parts that are files, with their MIME type"),
    Requirement("003-22", "An error response is the page's"),
    Requirement("003-23", "The five codes of JSON-RPC have their meaning"),
    # agents
    Requirement("003-24", "An agent is given the message, the ids of task and context, and the task so far"),
    Requirement("003-25", "An agent may answer with a message alone"),
    Requirement("003-30", "What an agent says and makes reaches clients as events, the last with final: true"),
    Requirement(
        "003-31",
        "JsonRpcTransportHandler, DefaultRequestHandler and InMemoryTaskStore make a server",
        elsewhere=_THEIRS,
    ),
    Requirement("003-32", "An agent implements AgentExecutor and publishes on an ExecutionEventBus", elsewhere=_THEIRS),
    # extensions
    Requirement("003-26", "The card declares extensions in capabilities.extensions"),
    Requirement("003-27", "Clients activate an extension by naming its URI in X-A2A-Extensions"),
    Requirement("003-28", "An extension that is required must be activated to talk to the agent"),
    Requirement("003-29", "The answer to a question sets the task to working again, and it goes on to completed"),
    # payments
    Requirement("003-40", "A payment is asked for with input-required and its requirements in metadata", pending=_PAID),
    Requirement("003-41", "The payment sets the task to working, then completed", pending=_PAID),
    # tried first
    Requirement("003-c1", "GET /.well-known/agent.json: protocolVersion 0.3.0, an extension with required: true"),
    Requirement("003-c2", "message/send without the header is -32600 and names the URI"),
    Requirement("003-c3", "With the header it is input-required: payment-required, and for how much", pending=_PAID),
    Requirement("003-c4", "Paid, it is completed with one receipt, and the URI is echoed", pending=_PAID),
    Requirement("003-c5", "The same payment again is DUPLICATE_NONCE and charges nothing", pending=_PAID),
    Requirement("003-c6", "A wrong payment fails with its code and a receipt that says so", pending=_PAID),
    Requirement("003-c7", "payment-rejected fails the task", pending=_PAID),
    Requirement(
        "003-c8", "Without its facilitator a task fails and does not hang; nothing settles twice", pending=_PAID
    ),
    Requirement("003-c9", "A paid stream shows payment-verified before payment-completed", pending=_PAID),
    Requirement("003-c10", "Sends need no messageId; tasks/get and tasks/cancel take id; all parts come back"),
    Requirement("003-c11", "What was offered before a restart can be paid after it", pending=_PAID),
    # decided
    Requirement("003-d1", "Both card paths are the same; the profile listens on port 3000 and is at /api/a2a"),
    Requirement("003-d2", "Results are the same to the letter and not; times are UTC with milliseconds"),
    Requirement(
        "003-d3", "What was made stands in artifacts; its text, or all of it if there is none, in the status too"
    ),
    Requirement("003-d4", "A task that is over cannot be cancelled; tasks are named id or taskId"),
    Requirement("003-d5", "What is answered without a task is a message, also in a stream"),
    Requirement("003-d6", "A message to a finished or unknown task begins a new one, one to a live task continues it"),
    Requirement("003-d7", "Ids that contradict each other are -32602"),
    Requirement(
        "003-d8",
        "A missing extension is -32600 naming header and URIs; either header will do; those in effect are echoed",
    ),
    Requirement("003-d9", "Known versions are answered in 0.3, unknown ones refused with -32009"),
    Requirement("003-d10", "Only literal streams have message frames; a superset says each piece in a status update"),
    Requirement("003-d11", "Superset frames are official responses with the page's members beside the result"),
    Requirement(
        "003-d12",
        "tasks/resubscribe begins with the status: at rest the only frame, and final; at work before what came so far",
    ),
    Requirement("003-d13", "Hanging up stops nothing; a cursor continues a stream, also in the middle of a piece"),
    Requirement(
        "003-d14", "A question or a demand to log in ends the stream; the answer names the task, and may be streamed"
    ),
    Requirement("003-d15", "The context alone answers nothing"),
    Requirement("003-d16", "Both kinds of waiting outlive the process; broken streams are taken up to the true end"),
    Requirement("003-d17", "Who has not logged in gets 401, or by setting a task in auth-required that is not kept"),
    Requirement("003-d18", "Plain frames are official responses alone"),
    Requirement("003-d19", "Either URI of the payment extension activates it", pending=_PAID),
    Requirement("003-d20", "Its webhook is told the whole task when it ends"),
    Requirement("003-d21", "Errors carry the name of what they are beside the number; to the letter they do not"),
)
