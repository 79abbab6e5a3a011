"""simple_a2a: its page, sentence by sentence, and what its users try first.

`002-c…` are the things tried first, `002-d…` what we decided where the page leaves room.
"""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    # the wire
    Requirement("002-1", "POST / takes every method, as JSON-RPC 2.0"),
    Requirement("002-2", "GET /agentCard returns the agent card"),
    Requirement("002-3", "The page's request is understood: a message with id, role and parts of text and kind"),
    Requirement("002-4", "Its response has the page's members: id echoed; task id, contextId, status, artifacts"),
    # methods
    Requirement("002-5", "tasks/send runs the task and answers it completed"),
    Requirement("002-6", "tasks/sendSubscribe streams events"),
    Requirement("002-7", "tasks/get answers a task by its id"),
    Requirement("002-8", "tasks/list answers all tasks"),
    Requirement("002-9", "tasks/cancel ends a task that is not over"),
    Requirement("002-10", "tasks/pushNotification/set registers a webhook"),
    Requirement("002-11", "tasks/pushNotification/get answers it"),
    Requirement("002-12", "tasks/pushNotification/delete removes it"),
    Requirement("002-13", "tasks/pushNotification/list answers all of them"),
    # errors
    Requirement("002-14", "-32700: what is no JSON"),
    Requirement("002-15", "-32600: what is no JSON-RPC 2.0 request"),
    Requirement("002-16", "-32601: an unknown method"),
    Requirement("002-17", "-32602: missing or invalid parameters"),
    Requirement("002-18", "-32603: what went wrong in the server"),
    Requirement("002-19", "-32001: no task with this id"),
    Requirement("002-20", "-32002: the task is over already"),
    Requirement("002-21", "-32003: the agent does not notify"),
    Requirement("002-22", "-32004: not supported, as streams of an agent that does not stream"),
    Requirement("002-23", "-32005: a part of a type the agent does not take"),
    Requirement("002-24", "-32006: the agent's answer is none"),
    Requirement("002-25", "-32007: a required extension was not named"),
    Requirement("002-26", "-32008: the version in A2A-Version is not supported"),
    # versions
    Requirement("002-27", "A2A-Version may be there or not"),
    Requirement("002-28", "1.0 and 0.3 are accepted"),
    Requirement("002-29", "Any other value is refused with -32008"),
    # the life of a task
    Requirement("002-30", "A task is submitted, then working"),
    Requirement("002-31", "It comes to completed, failed, canceled, rejected, input_required or auth_required"),
    Requirement("002-32", "A task that is over cannot be cancelled"),
    Requirement("002-33", "A task that waits for input or credentials goes on with a new message"),
    # streams
    Requirement("002-34", "tasks/sendSubscribe keeps the connection open and streams text/event-stream"),
    Requirement("002-35", "Its data lines are those of the page, member for member in its order, without an id"),
    Requirement("002-36", "The event with final: true is the last"),
    # tried first
    Requirement("002-c1", "GET /agentCard answers the card"),
    Requirement("002-c2", "tasks/send answers completed with an artifact, and the id it was sent with"),
    Requirement("002-c3", "curl shows tasks/sendSubscribe go from working to completed, final: true"),
    Requirement("002-c4", "tasks/get of a known task answers it, of an unknown one -32001"),
    Requirement("002-c5", "tasks/list is an array with the task in it"),
    Requirement("002-c6", "Cancelling a completed task is -32002; a running one is canceled, and its stream sees it"),
    Requirement("002-c7", "A webhook is set, got, listed, deleted and gone; it receives what happens"),
    Requirement("002-c8", "A2A-Version 1.0 and 0.3 pass, 2.0 is -32008"),
    Requirement(
        "002-c9",
        "Each of the wrong requests gets its number: no JSON, no jsonrpc, no such method, no message, no streams",
    ),
    Requirement("002-c9b", "A webhook where there are none is -32003"),
    Requirement(
        "002-c10", "A question is input_required and answered under the same id; a wrong token stays auth_required"
    ),
    # decided
    Requirement(
        "002-d1", "Its card is everybody's, with `interfaces` for its clients; the profile listens on port 9292"
    ),
    Requirement("002-d2", "Times are UTC with milliseconds"),
    Requirement("002-d3", "The list is of every dialect's tasks, whole, and no longer than an optional limit"),
    Requirement("002-d4", "A canceled task cannot be cancelled again"),
    Requirement("002-d5", "A task that waits can be cancelled, and takes no answer then"),
    Requirement(
        "002-d6", "A part has one of text, raw, url and data, with mediaType, filename and metadata; kind is dropped"
    ),
    Requirement("002-d7", "A reply without a task is a completed task, with the reply as its artifact"),
    Requirement("002-d8", "Versions are compared as they stand; the answer says which was spoken"),
    Requirement(
        "002-d9",
        "The names shared with 0.3 and 0.1 refuse neither 1.0 nor 0.3, and answer in the words of the task's maker",
    ),
    Requirement(
        "002-d10", "tasks/send names its task id or taskId, the shared names id as 0.3 does; two that differ are -32602"
    ),
    Requirement(
        "002-d11", "The context is taken from the message, beside it, or its metadata; contradictions are -32602"
    ),
    Requirement(
        "002-d12", "A message to a finished task is -32004, to an unknown one -32001; at a working one it waits"
    ),
    Requirement("002-d13", "An agent that raises fails its task, and nobody is told with what words"),
    Requirement("002-d14", "Superset frames add the context and how pieces go together; what they told the task holds"),
    Requirement("002-d15", "tasks/resubscribe begins with the task, and then tells what the first stream tells"),
    Requirement("002-d16", "Hanging up stops nothing; a cursor continues a stream, and never starts a second task"),
    Requirement("002-d17", "The context alone answers only one open question; of several, the error names the tasks"),
    Requirement("002-d18", "An answer may be streamed, by task or by context"),
    Requirement("002-d19", "Both kinds of waiting outlive the process; broken streams are taken up to the true end"),
    Requirement("002-d20", "Its own client's reading: everything it can do works, in superset and literal frames"),
    Requirement("002-d21", "Errors carry the name of what they are beside the number; to the letter they do not"),
    Requirement("002-d22", "Who has not logged in gets 401, or -32000 by setting; nobody finds anybody else's tasks"),
    Requirement("002-d23", "Its own names are spoken at the mounts of the other systems too"),
    Requirement("002-d24", "Its webhook is told the bare event: those it asked for, in its header"),
    Requirement("002-d25", "Scheme bearer signs what a webhook is told with the deployment's key"),
)
