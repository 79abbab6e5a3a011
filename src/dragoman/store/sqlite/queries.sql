-- Every statement the store runs: a name, a line of purpose, the statement.
-- Where a row list ends in /*rows*/, the list is repeated to write many rows with one statement: each statement costs
-- the writer a turn at the interpreter's lock, each row does not.

-- name: add_tasks
-- Begin tasks.
INSERT INTO tasks (
    n, uid, agent, tenant, owner, id, context_id, state, status_at, created_at, unattended, deadline, head
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*rows*/;

-- name: move_tasks
-- Write heads that moved by more than their output.
UPDATE tasks
SET state = new.column2, status_at = new.column3, unattended = new.column4, deadline = new.column5, head = new.column6
FROM (VALUES (?, ?, ?, ?, ?, ?)/*rows*/) AS new
WHERE tasks.n = new.column1;

-- name: add_facts
-- Append to logs.
INSERT INTO facts (task, seq, size, at, body)
VALUES (?, ?, ?, ?, ?)/*rows*/;

-- name: add_counts
-- Move counters by what a group changed.
INSERT INTO counts (agent, tenant, owner, state, tasks, bytes)
VALUES (?, ?, ?, ?, ?, ?)/*rows*/
ON CONFLICT (agent, tenant, owner, state) DO UPDATE
SET tasks = tasks + excluded.tasks, bytes = bytes + excluded.bytes;

-- name: tally
-- How many unfinished tasks an owner has, and the bytes of all of them.
SELECT
    coalesce(sum(tasks) FILTER (WHERE state NOT IN ('COMPLETED', 'FAILED', 'CANCELED', 'REJECTED')), 0),
    coalesce(sum(bytes), 0)
FROM counts
WHERE owner = ?;

-- name: add_keys
-- Use up idempotency keys.
INSERT INTO keys (agent, tenant, owner, key, uid, at, record)
VALUES (?, ?, ?, ?, ?, ?, ?)/*rows*/;

-- name: put_checkpoints
-- Say where folding may start from now on.
INSERT INTO checkpoints (task, seq, body)
VALUES (?, ?, ?)/*rows*/
ON CONFLICT (task) DO UPDATE SET seq = excluded.seq, body = excluded.body;

-- name: drop_segments
-- Forget the spans of an artifact that was replaced.
DELETE FROM segments
WHERE task = ? AND artifact = ?;

-- name: add_segments
-- Keep spans of artifacts outside the snapshot.
INSERT INTO segments (task, artifact, body)
VALUES (?, ?, ?)/*rows*/;

-- name: last_number
-- The highest number a task ever got and still needs.
SELECT max(coalesce((SELECT max(n) FROM tasks), 0), coalesce((SELECT max(task) FROM graves), 0));

-- name: head_by_uid
-- A task's head with the end of its log and whether it has hooks, for its owner only.
SELECT
    tasks.n, tasks.head, facts.seq, facts.size, facts.at, EXISTS (SELECT 1 FROM hooks WHERE hooks.task = tasks.n)
FROM tasks
LEFT JOIN facts ON facts.n = (SELECT n FROM facts WHERE task = tasks.n ORDER BY seq DESC LIMIT 1)
WHERE tasks.uid = ? AND tasks.agent = ? AND tasks.tenant = ? AND tasks.owner = ?;

-- name: head_by_id
-- A task's head with the end of its log, by the id clients use: its uid, or a name that its caller chose.
SELECT tasks.n, tasks.head, facts.seq, facts.size, facts.at
FROM tasks
LEFT JOIN facts ON facts.n = (SELECT n FROM facts WHERE task = tasks.n ORDER BY seq DESC LIMIT 1)
WHERE
    tasks.n = coalesce(
        (SELECT n FROM tasks WHERE uid = ? AND id = uid AND agent = ? AND tenant = ? AND owner = ?),
        (SELECT n FROM tasks WHERE agent = ? AND tenant = ? AND owner = ? AND id = ? AND id <> uid)
    );

-- name: head_by_id_of_anyone
-- The same, whoever owns it; of several that were given the same name, the newest.
SELECT tasks.n, tasks.head, facts.seq, facts.size, facts.at
FROM tasks
LEFT JOIN facts ON facts.n = (SELECT n FROM facts WHERE task = tasks.n ORDER BY seq DESC LIMIT 1)
WHERE
    tasks.n = coalesce(
        (SELECT n FROM tasks WHERE uid = ? AND id = uid AND agent = ? AND tenant = ?),
        (SELECT max(n) FROM tasks WHERE agent = ? AND tenant = ? AND id = ? AND id <> uid)
    );

-- name: facts_after
-- A task's log after a number, for its owner only.
SELECT seq, body
FROM facts
WHERE task = (SELECT n FROM tasks WHERE uid = ? AND agent = ? AND tenant = ? AND owner = ?) AND seq > ?
ORDER BY seq
LIMIT ?;

-- name: facts_of_tasks
-- The logs of these tasks after their checkpoints.
SELECT facts.task, facts.seq, facts.size, facts.at, facts.body
FROM json_each(?) AS these
LEFT JOIN checkpoints ON checkpoints.task = these.value
JOIN facts ON facts.task = these.value AND facts.seq > coalesce(checkpoints.seq, 0)
ORDER BY facts.task, facts.seq;

-- name: sizes_of_tasks
-- What the logs of these tasks hold, in bytes.
SELECT these.value, (SELECT facts.size FROM facts WHERE facts.task = these.value ORDER BY facts.seq DESC LIMIT 1)
FROM json_each(?) AS these;

-- name: checkpoints_of_tasks
-- The snapshots of these tasks.
SELECT checkpoints.task, checkpoints.seq, checkpoints.body
FROM json_each(?) AS these
JOIN checkpoints ON checkpoints.task = these.value;

-- name: segments_of_tasks
-- The artifact spans of these tasks, in the order they were kept.
SELECT segments.task, segments.body
FROM json_each(?) AS these
JOIN segments ON segments.task = these.value
ORDER BY segments.task, segments.n;

-- name: states
-- The states a scope has tasks in.
SELECT state
FROM counts
WHERE agent = ? AND tenant = ? AND owner = ? AND tasks > 0;

-- name: owners
-- Who has tasks with this agent and tenant, and in which states.
SELECT owner, state
FROM counts
WHERE agent = ? AND tenant = ? AND tasks > 0;

-- name: list_in_state
-- A page of a scope's tasks in one state, newest status first.
SELECT n, head, status_at, uid
FROM tasks INDEXED BY tasks_in_state
WHERE agent = ? AND tenant = ? AND owner = ? AND state = ? AND status_at >= ? AND (status_at, uid) < (?, ?)
ORDER BY status_at DESC, uid DESC
LIMIT ?;

-- name: list_in_context
-- A page of the tasks of one context, in one state or in any (the last but five says which).
SELECT n, head, status_at, uid
FROM tasks INDEXED BY tasks_in_context
WHERE
    agent = ? AND tenant = ? AND owner = ? AND context_id = ? AND (? = '' OR state = ?)
    AND status_at >= ? AND (status_at, uid) < (?, ?)
ORDER BY status_at DESC, uid DESC
LIMIT ?;

-- name: count_by_counters
-- How many tasks a scope has, in one state or in any.
SELECT coalesce(sum(tasks), 0)
FROM counts
WHERE agent = ? AND tenant = ? AND owner = ? AND (? = '' OR state = ?);

-- name: count_in_state_since
-- How many of a scope's tasks are in a state since a time.
SELECT count(*)
FROM tasks INDEXED BY tasks_in_state
WHERE agent = ? AND tenant = ? AND owner = ? AND state = ? AND status_at >= ?;

-- name: count_in_context
-- How many tasks a context has, in one state or in any, since a time.
SELECT count(*)
FROM tasks INDEXED BY tasks_in_context
WHERE agent = ? AND tenant = ? AND owner = ? AND context_id = ? AND (? = '' OR state = ?) AND status_at >= ?;

-- name: key
-- What an idempotency key was used for.
SELECT record
FROM keys
WHERE agent = ? AND tenant = ? AND owner = ? AND key = ?;

-- name: unattended
-- Tasks that somebody must hold, oldest first. The counters name the few scopes and states to look at.
SELECT tasks.n, tasks.head, facts.seq, facts.size, facts.at
FROM tasks
LEFT JOIN facts ON facts.n = (SELECT n FROM facts WHERE task = tasks.n ORDER BY seq DESC LIMIT 1)
WHERE
    tasks.n IN (
        SELECT busy.n
        FROM counts
        JOIN tasks AS busy INDEXED BY tasks_in_state
            ON
                busy.agent = counts.agent AND busy.tenant = counts.tenant AND busy.owner = counts.owner
                AND busy.state = counts.state
        WHERE counts.state IN ('SUBMITTED', 'WORKING') AND counts.tasks > 0
        UNION ALL
        SELECT n FROM tasks INDEXED BY tasks_held WHERE unattended AND state IN ('INPUT_REQUIRED', 'AUTH_REQUIRED')
    )
ORDER BY tasks.created_at, tasks.uid;

-- name: due
-- Tasks whose cancel deadline or expiry has passed.
SELECT tasks.n, tasks.head, facts.seq, facts.size, facts.at
FROM tasks
LEFT JOIN facts ON facts.n = (SELECT n FROM facts WHERE task = tasks.n ORDER BY seq DESC LIMIT 1)
WHERE tasks.deadline > 0 AND tasks.deadline <= ?
ORDER BY tasks.deadline
LIMIT ?;

-- name: lapsed
-- Finished tasks whose time is over. The counters name the few scopes and states to look at.
SELECT tasks.n, tasks.uid, tasks.agent, tasks.tenant, tasks.owner, tasks.state, tasks.head
FROM counts
JOIN tasks INDEXED BY tasks_in_state
    ON
        tasks.agent = counts.agent AND tasks.tenant = counts.tenant AND tasks.owner = counts.owner
        AND tasks.state = counts.state AND tasks.status_at < ?
WHERE counts.state IN ('COMPLETED', 'FAILED', 'CANCELED', 'REJECTED') AND counts.tasks > 0
LIMIT ?;

-- name: bury
-- Remember whose facts are to be deleted.
INSERT INTO graves (task)
SELECT value
FROM json_each(?);

-- name: drop_keys_of_tasks
-- Free the keys of tasks that go.
DELETE FROM keys
WHERE uid <> '' AND uid IN (SELECT tasks.uid FROM json_each(?) AS these JOIN tasks ON tasks.n = these.value);

-- name: drop_tasks
-- Delete tasks.
DELETE FROM tasks
WHERE n IN (SELECT value FROM json_each(?));

-- name: drop_checkpoints
-- Delete the snapshots of tasks that go.
DELETE FROM checkpoints
WHERE task IN (SELECT value FROM json_each(?));

-- name: drop_empty_counts
-- Forget scopes that have no task any more.
DELETE FROM counts
WHERE tasks = 0;

-- name: drop_old_replies
-- Free the keys of direct replies whose time is over.
DELETE FROM keys
WHERE uid = '' AND at < ?;

-- name: next_grave
-- A task whose facts are to be deleted.
SELECT task
FROM graves
LIMIT 1;

-- name: drop_facts
-- Delete a slice of a buried log.
DELETE FROM facts
WHERE n IN (SELECT n FROM facts WHERE task = ? LIMIT ?);

-- name: drop_segments_of
-- Delete a slice of a buried task's artifact spans.
DELETE FROM segments
WHERE n IN (SELECT n FROM segments WHERE task = ? LIMIT ?);

-- name: close_grave
-- Nothing of this task is left.
DELETE FROM graves
WHERE task = ?;

-- name: is_empty
-- Whether nothing of a buried task is left.
SELECT NOT EXISTS (SELECT 1 FROM facts WHERE task = ?) AND NOT EXISTS (SELECT 1 FROM segments WHERE task = ?);

-- name: last_hook
-- The highest number of a hook.
SELECT coalesce(max(n), 0)
FROM hooks;

-- name: lanes
-- Which receivers have news waiting, and since when.
SELECT lane, min(due)
FROM hooks
WHERE due > 0
GROUP BY lane;

-- name: due_in_lane
-- The first hooks of a receiver by when their oldest news are due.
SELECT due, n
FROM hooks
WHERE lane = ? AND due > 0
ORDER BY due, n
LIMIT ?;

-- name: places
-- Where in which lane these hooks wait now.
SELECT lane, due
FROM hooks
WHERE n IN (SELECT value FROM json_each(?)) AND due > 0;

-- name: hook
-- A hook, for its task's owner only.
SELECT hooks.hook
FROM tasks
JOIN hooks ON hooks.task = tasks.n
WHERE tasks.uid = ? AND tasks.agent = ? AND tasks.tenant = ? AND tasks.owner = ? AND hooks.id = ?;

-- name: hooks_of_task
-- A task's hooks, for its owner only.
SELECT hooks.hook
FROM tasks
JOIN hooks ON hooks.task = tasks.n
WHERE tasks.uid = ? AND tasks.agent = ? AND tasks.tenant = ? AND tasks.owner = ?
ORDER BY hooks.n;

-- name: count_hooks
-- How many hooks an owner has, counted up to so many.
SELECT count(*)
FROM (SELECT 1 FROM hooks WHERE owner = ? LIMIT ?);

-- name: hooks_of_scope
-- All hooks of a scope.
SELECT hook
FROM hooks
WHERE agent = ? AND tenant = ? AND owner = ?
ORDER BY n;

-- name: lines_of_task
-- What waits for each hook of a task, and what died waiting.
SELECT
    hooks.n, hooks.task, hooks.id, hooks.lane, hooks.calm_at,
    deliveries.id, deliveries.seq, deliveries.due, deliveries.calm, deliveries.attempts, deliveries.dead
FROM hooks
LEFT JOIN deliveries ON deliveries.hook = hooks.n
WHERE hooks.task = ?;

-- name: lines_of_hooks
-- What waits for each of these hooks, and what died waiting.
SELECT
    hooks.n, hooks.task, hooks.id, hooks.lane, hooks.calm_at,
    deliveries.id, deliveries.seq, deliveries.due, deliveries.calm, deliveries.attempts, deliveries.dead
FROM json_each(?) AS these
JOIN hooks ON hooks.n = these.value
LEFT JOIN deliveries ON deliveries.hook = hooks.n;

-- name: hook_of_delivery
-- Which hook a delivery is for.
SELECT hook
FROM deliveries
WHERE id = ?;

-- name: first_deliveries
-- The oldest news that wait for each of these hooks, with the fact's row of the log.
SELECT
    hooks.n, deliveries.calm, hooks.hook, tasks.id, tasks.context_id, deliveries.id, deliveries.seq, deliveries.due,
    deliveries.attempts, deliveries.dead, deliveries.error, deliveries.at, deliveries.media_type, deliveries.body,
    facts.seq, facts.body
FROM json_each(?) AS these
JOIN hooks ON hooks.n = these.value
JOIN deliveries
    ON deliveries.n = (SELECT n FROM deliveries WHERE hook = these.value AND dead = 0 ORDER BY seq LIMIT 1)
JOIN tasks ON tasks.n = hooks.task
JOIN facts
    ON facts.n = (SELECT n FROM facts WHERE task = hooks.task AND seq >= deliveries.seq ORDER BY seq LIMIT 1);

-- name: delivery
-- One delivery, with the fact's row of the log.
SELECT
    hooks.n, deliveries.calm, hooks.hook, tasks.id, tasks.context_id, deliveries.id, deliveries.seq, deliveries.due,
    deliveries.attempts, deliveries.dead, deliveries.error, deliveries.at, deliveries.media_type, deliveries.body,
    facts.seq, facts.body
FROM deliveries
JOIN hooks ON hooks.n = deliveries.hook
JOIN tasks ON tasks.n = hooks.task
JOIN facts
    ON facts.n = (SELECT n FROM facts WHERE task = hooks.task AND seq >= deliveries.seq ORDER BY seq LIMIT 1)
WHERE deliveries.id = ?;

-- name: dead_deliveries
-- A page of the dead letters, newest first.
SELECT
    hooks.n, deliveries.calm, hooks.hook, tasks.id, tasks.context_id, deliveries.id, deliveries.seq, deliveries.due,
    deliveries.attempts, deliveries.dead, deliveries.error, deliveries.at, deliveries.media_type, deliveries.body,
    facts.seq, facts.body
FROM deliveries
JOIN hooks ON hooks.n = deliveries.hook
JOIN tasks ON tasks.n = hooks.task
JOIN facts
    ON facts.n = (SELECT n FROM facts WHERE task = hooks.task AND seq >= deliveries.seq ORDER BY seq LIMIT 1)
WHERE deliveries.dead AND deliveries.id < ?
ORDER BY deliveries.id DESC
LIMIT ?;

-- name: put_hooks
-- Keep hooks, or replace them.
INSERT INTO hooks (n, task, agent, tenant, owner, id, lane, due, calm_at, hook)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*rows*/
ON CONFLICT (n) DO UPDATE SET
    lane = excluded.lane, due = excluded.due, calm_at = excluded.calm_at, hook = excluded.hook;

-- name: move_hooks
-- Say when the next of their news is due.
UPDATE hooks
SET due = new.column2, calm_at = new.column3
FROM (VALUES (?, ?, ?)/*rows*/) AS new
WHERE hooks.n = new.column1;

-- name: drop_hooks
-- Forget hooks.
DELETE FROM hooks
WHERE n IN (SELECT value FROM json_each(?));

-- name: drop_deliveries_of
-- Forget all that waits for these hooks, and their dead letters.
DELETE FROM deliveries
WHERE hook IN (SELECT value FROM json_each(?));

-- name: forget_bodies
-- What was made for hooks that were replaced is made anew.
UPDATE deliveries
SET media_type = '', body = x''
WHERE hook IN (SELECT value FROM json_each(?)) AND body <> x'';

-- name: add_deliveries
-- Put news in line.
INSERT INTO deliveries (id, hook, at, seq, due, calm, attempts, dead)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*rows*/;

-- name: drop_deliveries
-- Forget what arrived, or is no news any more.
DELETE FROM deliveries
WHERE id IN (SELECT value FROM json_each(?));

-- name: move_deliveries
-- Let deliveries wait until then, or be dead.
UPDATE deliveries
SET due = new.column2, attempts = new.column3, dead = new.column4
FROM (VALUES (?, ?, ?, ?)/*rows*/) AS new
WHERE deliveries.id = new.column1;

-- name: note_errors
-- Say why attempts failed.
UPDATE deliveries
SET error = new.column2
FROM (VALUES (?, ?)/*rows*/) AS new
WHERE deliveries.id = new.column1;

-- name: keep_bodies
-- Keep what was made for first attempts.
UPDATE deliveries
SET media_type = new.column2, body = new.column3
FROM (VALUES (?, ?, ?)/*rows*/) AS new
WHERE deliveries.id = new.column1;

-- name: drop_deliveries_of_tasks
-- Forget what waits for hooks of tasks that go, and their dead letters.
DELETE FROM deliveries
WHERE hook IN (SELECT hooks.n FROM json_each(?) AS these JOIN hooks ON hooks.task = these.value);

-- name: drop_hooks_of_tasks
-- Forget the hooks of tasks that go.
DELETE FROM hooks
WHERE task IN (SELECT value FROM json_each(?));
