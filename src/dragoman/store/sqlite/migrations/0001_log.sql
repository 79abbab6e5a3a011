-- The log: tasks, their facts, checkpoints, counters and idempotency keys.

-- One row per task. `head` is the whole head as JSON; the other columns are what lookups, lists and sweeps search by.
-- `n` is the row's own number: eight bytes instead of the uid in every row of facts.
CREATE TABLE tasks (
    n INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    context_id TEXT NOT NULL,
    state TEXT NOT NULL,
    status_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    unattended INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    head BLOB NOT NULL
);

-- Every index is written twice in a short task's life, so there are few. Most tasks are named by their uid, which is
-- unique already; only names that callers chose need an index of their own.
CREATE UNIQUE INDEX tasks_named ON tasks (agent, tenant, owner, id) WHERE id <> uid;

-- Lists begin with the newest and read these from the end; new entries come at the end, which is quicker to write.
CREATE INDEX tasks_in_context ON tasks (agent, tenant, owner, context_id, status_at, uid);

-- Lists of all states merge those of each, and whoever looks for running tasks looks in their states.
CREATE INDEX tasks_in_state ON tasks (agent, tenant, owner, state, status_at, uid);

-- Questions for whose answer a handler waits in memory.
CREATE INDEX tasks_held ON tasks (n) WHERE unattended AND state IN ('INPUT_REQUIRED', 'AUTH_REQUIRED');

CREATE INDEX tasks_due ON tasks (deadline) WHERE deadline > 0;

-- One row holds the facts of one append (or a part of it) as a JSON array; `seq` is the number of its last fact.
-- `size` and `at` are the head's size and updated_at after it: rows of mere output don't rewrite the task's row.
-- Appending in rowid order with a narrow index dirties a third of the pages a table clustered by task would.
CREATE TABLE facts (
    n INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE UNIQUE INDEX facts_of_task ON facts (task, seq);

-- Where folding may start.
CREATE TABLE checkpoints (
    task INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE segments (
    n INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    artifact TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX segments_of_task ON segments (task, n);

-- How many tasks of each state a scope has: totals of lists without counting rows.
CREATE TABLE counts (
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (agent, tenant, owner, state)
) WITHOUT ROWID;

CREATE TABLE keys (
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    uid TEXT NOT NULL,
    at INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (agent, tenant, owner, key)
) WITHOUT ROWID;

CREATE INDEX keys_of_task ON keys (uid) WHERE uid <> '';

CREATE INDEX keys_of_replies ON keys (at) WHERE uid = '';

-- Tasks that are gone but whose facts are still being deleted, a slice at a time.
CREATE TABLE graves (
    task INTEGER PRIMARY KEY
);
