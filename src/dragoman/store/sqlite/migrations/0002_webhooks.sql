-- Webhooks: where a task's news go, and the news on their way.

-- One row per hook. `hook` is the whole hook as JSON, secrets included; nothing else holds them. `lane` is its receiver.
-- `due` is when the oldest of its news may go out, 0 when none waits: what is due is found here, however much waits.
CREATE TABLE hooks (
    n INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    lane TEXT NOT NULL,
    due INTEGER NOT NULL,
    calm_at INTEGER NOT NULL,
    hook BLOB NOT NULL,
    UNIQUE (task, id)
);

CREATE INDEX hooks_of_scope ON hooks (agent, tenant, owner, n);

CREATE INDEX hooks_due ON hooks (lane, due) WHERE due > 0;

-- One row per delivery that waits or is dead. The fact itself is in the log, under its number; `body` is what was made
-- of it for the first attempt.
CREATE TABLE deliveries (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    hook INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    due INTEGER NOT NULL,
    calm INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    media_type TEXT NOT NULL DEFAULT '',
    body BLOB NOT NULL DEFAULT x''
);

CREATE INDEX deliveries_of_hook ON deliveries (hook, dead, seq);

CREATE INDEX deliveries_dead ON deliveries (id) WHERE dead;
