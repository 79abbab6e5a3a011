"""What exactly happens: the promises as a whole (`D-…`), and identity, log, turns, parking, streams and safety to the
sentence (`S-…`).
"""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    # --- as a whole
    Requirement("D-2-1", "Nothing reaches a client, a stream or a reader before it is committed."),
    Requirement("D-2-2", "Killed between any two lines, we never contradict what a client has seen."),
    Requirement(
        "D-2-3", "Who comes back with a cursor goes on exactly after it: live, after the end, after a restart."
    ),
    Requirement("D-2-4", "No late event, cancel or crash changes a terminal task."),
    Requirement(
        "D-2-5",
        "Every stream ends with the task's true state; a drained one without a final marker and with a cursor"
        " that resumes.",
    ),
    Requirement("D-2-6", "A turn nobody runs any more is run again or failed with a reason, never left working."),
    Requirement(
        "D-2-7",
        "Bodies, parts, queues, streams, requests, tasks, contexts and waits have limits, each with a "
        "documented default.",
    ),
    Requirement("D-2-8", "What hits a limit gets a clear error."),
    Requirement("D-2-9", "A slow reader reads the log from its cursor: nothing is queued for it and nothing is cut."),
    Requirement(
        "D-2-10",
        "Nothing outside `wire` knows a dialect; an error number or a list of terminal states exists in one place.",
    ),
    Requirement("D-2-11", "We listen on loopback unless told otherwise."),
    Requirement("D-2-12", "A caller sees only its own tasks."),
    Requirement("D-2-13", "No exception text, path, SQL or secret reaches a client."),
    Requirement("D-2-14", "Webhooks and cards from elsewhere pass the guard against addresses inside.", "client"),
    # --- keeping
    Requirement(
        "D-5-1", "One append holds its facts and the task's row, all or nothing, with a writer that groups what waits."
    ),
    Requirement("D-5-2", "Both stores hold to one contract."),
    Requirement(
        "D-5-3",
        "Every change of the schema is a numbered migration; a file of another program or of a newer version "
        "is left alone.",
    ),
    Requirement("D-5-4", "A chunk is one small row; appending to an artifact rewrites nothing."),
    Requirement("D-5-5", "Getting and listing tasks do not get slower as logs grow."),
    Requirement("D-5-6", "Finished tasks are deleted after their retention, a day unless told."),
    Requirement(
        "D-5-7",
        "Memory forgets finished tasks after an hour or above a thousand, and conversations above five hundred.",
    ),
    Requirement("D-5-8", "Running and parked tasks are never evicted."),
    Requirement("D-5-9", "The idempotency key comes in a header or in the configuration."),
    # --- agents
    Requirement(
        "D-6-1",
        "An agent returns or yields text, bytes, data, parts, artifacts, messages, and whatever msgspec or "
        "pydantic can encode.",
    ),
    Requirement("D-6-2", "A turn shows the message, its content, who asks, the conversation and its attempt."),
    Requirement(
        "D-6-3",
        "Hints become JSON Schema; data fills the arguments, and what does not fit rejects the task and names"
        " the field.",
    ),
    Requirement("D-6-4", "The skill is named by metadata, is the only one, or is chosen by the author's router."),
    Requirement("D-6-5", "Cancel interrupts the code at once and the task is canceled at a deadline regardless."),
    Requirement(
        "D-6-6",
        'After a restart a working turn is failed with "interrupted by server restart", or run again where '
        "its skill says so.",
    ),
    Requirement("D-6-7", "Sync handlers run in threads; a handler that blocks the event loop is reported."),
    Requirement("D-6-8", "A crash in mid-stream restarts the unfinished artifact without append."),
    Requirement("D-6-9", "A tool registry becomes an agent and its card."),
    Requirement(
        "D-6-10", "Executors, graphs, applications and commands of others are served as agents.", "agent framework"
    ),
    # --- identity and scope
    Requirement(
        "S-1-1", "Every task has a UUIDv7 of our own, the key of cursors and tables, whatever clients call the task."
    ),
    Requirement("S-1-2", "A task's id is unique per agent, tenant and owner."),
    Requirement("S-1-3", "So are contexts."),
    Requirement("S-1-4", "Agent, tenant and owner are columns from the first migration on."),
    Requirement(
        "S-1-5", 'Every load, list, read and append names its scope: "not yours" and "unknown" are one answer.'
    ),
    Requirement("S-1-6", "An id from outside has at most 256 characters and no control characters."),
    Requirement("S-1-7", "One list of reserved first segments holds for paths, tenants and slugs."),
    # --- the log
    Requirement("S-2-1", "A fact is shown to clients or is private."),
    Requirement(
        "S-2-2", "One sequence numbers all facts of a task across its turns; the store gives the numbers at the commit."
    ),
    Requirement("S-2-3", "A frame's id is the uid and the number, strictly rising, and opaque to clients."),
    Requirement("S-2-4", "No public fact is skipped and none comes twice."),
    Requirement("S-2-5", "A snapshot carries the number it folds."),
    Requirement("S-2-6", "Of several frames of one fact only the last has an id."),
    Requirement("S-2-7", "Keepalives and the last word of a stream have none."),
    Requirement(
        "S-2-8",
        "Without a cursor a stream begins with the task in the dialects that do so, with a status update in "
        "the others.",
    ),
    Requirement("S-2-9", "With a cursor there is no snapshot: the stream goes on after it."),
    Requirement("S-2-10", "A cursor of another task is an invalid parameter."),
    Requirement("S-2-11", "A cursor older than the log gets a new snapshot whose id supersedes it, never silence."),
    Requirement("S-2-12", "A subscription to a finished task with an older cursor gets the rest and closes."),
    Requirement("S-2-13", "Otherwise the dialect's rule holds: an error, or the final state."),
    Requirement(
        "S-2-14",
        "A send with a cursor never starts a second turn: it resumes that task, if it is the caller's and the"
        " same message.",
    ),
    Requirement(
        "S-2-15",
        "An operation's guard is the version it read, which moves with state, message, cancel and claim and "
        "not with output.",
    ),
    Requirement("S-2-16", "A turn's guard is its id and epoch, on a task that has not ended."),
    Requirement("S-2-17", "A conflict concerns one append and never its group."),
    Requirement("S-2-18", "A failed commit leaves the outcome open: it is read again, then decided."),
    Requirement("S-2-19", "Adjacent text chunks with equal metadata become one part."),
    Requirement(
        "S-2-20", "Checkpoints are taken of live tasks too, by facts and bytes, so that no read folds more than a span."
    ),
    Requirement("S-2-21", "The log is kept for as long as its task."),
    Requirement(
        "S-2-22", "A snapshot above a mebibyte leaves artifact bodies out and replays the artifact facts instead."
    ),
    Requirement(
        "S-2-23",
        "An event is encoded once per dialect however many read it; the envelope with the request's id is put"
        " around it.",
    ),
    Requirement("S-2-24", "What is kept for readers is bounded in bytes."),
    # --- durability points
    Requirement("S-3-1", "Words, chunks and usage return at once, into a buffer that is flushed every tick."),
    Requirement("S-3-2", "The buffer is bounded, in facts and bytes; a handler waits while it is full."),
    Requirement("S-3-3", "Steps, questions, authorizations, an accepted message and the end wait for their commit."),
    Requirement("S-3-4", "What a commit writes is frozen when it is built."),
    Requirement(
        "S-3-5",
        "On a full disk the caller gets an error, the turn is cancelled and its failure is written once there is room.",
    ),
    Requirement("S-3-6", "Room is kept for facts that end tasks."),
    # --- turns
    Requirement("S-4-1", "A turn runs in a task and a context of the engine's own."),
    Requirement("S-4-2", "Disconnects, hosts that give up and middlewares never touch a turn."),
    Requirement("S-4-3", "A store claims, prolongs, releases and tells what is free or due, by its own time."),
    Requirement("S-4-4", "Who accepts a message claims its task in the same append."),
    Requirement("S-4-5", "A lost epoch stops the turn here, and its appends are refused."),
    Requirement(
        "S-4-6", "One process per SQLite file; a second one refuses with the reason; recovery needs no waiting."
    ),
    Requirement("S-4-7", "A bus has a bell per task and one for work."),
    Requirement("S-4-8", "Messages to a working task wait in an inbox of eight, then there is an error."),
    Requirement(
        "S-4-9",
        "A turn that ends while messages wait keeps the task working and begins the next in the same append; "
        "who waits, waits until the task settles.",
    ),
    Requirement("S-4-10", "The first committed answer answers a question, later ones queue."),
    Requirement("S-4-11", "Contexts run in parallel unless the agent serializes them."),
    Requirement("S-4-12", "A cancel is a private fact with a deadline; whoever asked waits for the end."),
    Requirement(
        "S-4-13", "The first end wins: canceled answers the task, another end is not cancelable or the dialect's no-op."
    ),
    Requirement("S-4-14", "After its deadline a cancel is carried out by any replica."),
    Requirement("S-4-15", "What is parked by replay or waits in a queue is canceled at once."),
    Requirement("S-4-16", "The slot of a cancelled thread stays counted until the thread returns."),
    Requirement(
        "S-4-17", "A blocking send waits until the task settles or is interrupted, for as long as its client stays."
    ),
    Requirement("S-4-18", "A cap on that is a setting, off by default, and answers with the task as it is."),
    Requirement("S-4-19", "A direct skill answers with a message: no task, no log, nothing to cancel."),
    Requirement("S-4-20", "Its key remembers the message."),
    Requirement("S-4-21", "A reply from another skill becomes the status message of a completed task."),
    # --- parking
    Requirement(
        "S-5-1",
        "By default a question is committed, unwinds the handler past every `except Exception`, and frees everything.",
    ),
    Requirement("S-5-2", "The answer always runs the handler again, also in the same process."),
    Requirement("S-5-3", "The first paragraph about `ask` says that code outside `step` runs again."),
    Requirement(
        "S-5-4",
        'A rerun that does not meet what the journal remembers fails with "the handler changed while it was parked".',
    ),
    Requirement("S-5-5", "One question at a time; a second one raises."),
    Requirement("S-5-6", "Steps at once are told apart by their names."),
    Requirement("S-5-7", "A rerun delivers nothing again up to the parked question, whatever it says now."),
    Requirement("S-5-8", "Usage counts once."),
    Requirement("S-5-9", "A step runs at least once until its result is committed, under an id that stays the same."),
    Requirement("S-5-10", "A crashing turn is run again three times at most."),
    Requirement("S-5-11", "A held question keeps its handler and its claim."),
    Requirement("S-5-12", "Held questions are limited in number."),
    Requirement("S-5-13", "A held question whose owner dies follows `on_restart`."),
    Requirement("S-5-14", "`require_auth` with something to wait for holds, and streams stay open."),
    Requirement("S-5-15", "Without, it parks; a message or a callback wakes it."),
    Requirement("S-5-16", "A parked task expires after thirty days and fails with the reason."),
    Requirement("S-5-17", "Parked tasks count; memory refuses new ones at its limit."),
    Requirement("S-5-18", "What memory forgets a durable store still answers."),
    # --- dialects without branches
    Requirement(
        "S-6-1",
        "Where dialects differ in what happens, every operation carries it: messages to finished, unknown and"
        " working tasks, cancels, contexts, and when streams close.",
    ),
    Requirement("S-6-2", "A stream that stays open over a question ends after its patience."),
    Requirement("S-6-3", "The origin kept with a task is a label only `wire` reads."),
    Requirement("S-6-4", "At `/`, `tasks/send` with a type or a session is 0.1, otherwise simple_a2a."),
    Requirement(
        "S-6-5", "The verbs both share with 0.3 are read as 0.3's and answered in the words of who made the task."
    ),
    Requirement("S-6-6", "`tasks/list` exists only in simple_a2a."),
    Requirement(
        "S-6-7",
        "The names of push configurations both have are told apart by their parameters and by who made the task.",
    ),
    Requirement("S-6-8", "simple_a2a's own names have its version rule; shared names pass in 1.0 and 0.3."),
    Requirement(
        "S-6-9",
        "Every seed mount takes every slash method; `/` keeps to the official ones and the two oldest dialects.",
    ),
    Requirement(
        "S-6-10", "Loose spellings mean the same: snake case, null, enum numbers, integer strings, either base64."
    ),
    Requirement("S-6-11", "A task's id is never dropped silently, however it is spelled."),
    Requirement("S-6-12", "Depth is checked before anything is decoded."),
    Requirement("S-6-13", "Numbers keep their value; one that nothing can hold is an error."),
    # --- idempotency
    Requirement(
        "S-7-1", "A key is unique per agent, tenant and owner, and written in the append that accepts the message."
    ),
    Requirement(
        "S-7-2",
        "The same key with another message or configuration is an error; the envelope and a missing message "
        "id make no difference.",
    ),
    Requirement("S-7-3", "A repeat attaches to the running or finished task."),
    Requirement("S-7-4", "A repeated stream begins at the cursor or at the start."),
    Requirement("S-7-5", "A refused request does not use up its key."),
    Requirement("S-7-6", "A message id never makes two tasks one."),
    Requirement("S-7-7", "Keys are kept over restarts, as long as their task and a direct reply's for a day."),
    Requirement("S-7-8", "Of requests at once under one key one is carried out, for direct replies too."),
    # --- webhooks
    Requirement("S-8-1", "The append writes the deliveries it causes itself, and only for tasks with hooks."),
    Requirement("S-8-2", "Progress is one delivery per hook, overwritten by the latest."),
    Requirement("S-8-3", "A body is rendered at its first attempt and kept, with its id, for the others."),
    Requirement("S-8-4", "Secrets live only with the configuration."),
    # --- safety on loopback
    Requirement("S-9-1", "Without authentication a Host must be loopback or configured."),
    Requirement("S-9-2", "A foreign Origin is forbidden."),
    Requirement("S-9-3", "Bodies have a JSON media type."),
    Requirement("S-9-4", "CORS is off."),
    Requirement("S-9-5", "Forwarding headers are refused unless the proxy is trusted."),
    Requirement("S-9-6", "An address beyond loopback without authentication refuses to start."),
    Requirement("S-9-7", "`asgi()` holds requests to the same rules."),
    Requirement("S-9-8", "Nothing fetches an address a client sent."),
    Requirement(
        "S-9-9", "Addresses on cards come from the public URL or an allowed Host, and caches are told that they vary."
    ),
    # --- serving
    Requirement("S-10-1", "Headers have a deadline and a size."),
    Requirement("S-10-2", "A client's certificate is in the scope."),
    Requirement(
        "S-10-3",
        "Draining: not ready, then no new messages, then turns get their time, then claims are released, then"
        " streams close.",
    ),
    Requirement("S-10-4", "A drained stream ends without a final marker and its client goes on after the last id."),
    Requirement("S-10-5", "`asgi()` starts at the first request, once, and has a lifespan and a drain for its host."),
    Requirement("S-10-6", "It honours `root_path`."),
    Requirement("S-10-7", "The port opens only after recovery."),
    Requirement("S-10-8", "Clock, ids and resolver are ports that tests hold."),
    # --- layers
    Requirement("S-11-1", "The import contracts hold."),
    Requirement("S-11-2", "Numbers with full sync are judged against a probe of the disk in the same run."),
    Requirement("S-11-3", "Totals of lists come from counters kept in the append."),
    # --- pinned
    Requirement("S-12-1", "A skill's id is the function's name unless said otherwise."),
    Requirement(
        "S-12-2", "`say`, `ask`, `step`, `artifact`, `require_auth`, `reject` and `fail` are awaited; `usage` is not."
    ),
    Requirement("S-12-3", "An unknown `metadata.skill` is ignored where the only skill or a router decides."),
    Requirement("S-12-4", "A store is named by a URL or a path."),
    Requirement("S-12-5", "All that is kept is in one file."),
    Requirement("S-12-6", "An agent that names no input modes takes everything."),
    Requirement(
        "S-12-7", "When a yielding handler ends, an empty last chunk follows; none is held back to carry the flag."
    ),
    Requirement("S-12-8", "Without configured tenants any tenant path is accepted and is a boundary of its own."),
    Requirement("S-12-9", "protoAgent: every task tells its duration, and zeros where nothing was used."),
    Requirement("S-12-10", "On the seed mounts a message without a role is the user's."),
    Requirement("S-12-11", "coding-agent: messages of errors are exactly the page's."),
    Requirement("S-12-12", "Cancelling a canceled task: an error for simple_a2a and 0.3, the task elsewhere."),
    Requirement("S-12-13", "Cortex: both methods answer the same public card."),
    Requirement("S-12-14", "Cortex: its file's address counts as asked for, with a loud warning."),
    Requirement("S-12-15", "Cortex: its list has every task that has not expired."),
    Requirement("S-12-16", "Memory and cache evict at a thousand tasks and an hour; a durable store keeps a day."),
    Requirement(
        "S-12-17",
        "A2X: in superset style an answer is a status update that carries the message; messages come only to "
        "the letter.",
    ),
    Requirement(
        "S-12-18",
        "protoAgent's REST aliases take the push configuration in either form and answer bare objects.",
    ),
    Requirement("S-12-19", "Push is on by default; 4xx are not retried; ports from 1024 up are never blocked."),
    Requirement("S-12-20", "`A2A_AUTH_TOKEN` is a static bearer for every mount; cards stay public."),
)
