-- How much each owner has kept: counted where tasks are counted, and summed by owner.

ALTER TABLE counts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE counts
SET bytes = coalesce(
    (
        SELECT sum(json_extract(CAST(tasks.head AS TEXT), '$.size'))
        FROM tasks
        WHERE
            tasks.agent = counts.agent AND tasks.tenant = counts.tenant AND tasks.owner = counts.owner
            AND tasks.state = counts.state
    ),
    0
);

CREATE INDEX counts_of_owner ON counts (owner);
