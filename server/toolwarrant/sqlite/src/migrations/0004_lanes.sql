-- The tasks in flight say which lanes are held; the one process that writes keeps these in memory, so that a task costs no page
-- at random. What is left to be kept of a lane is since when and until when its target settles.
CREATE TABLE settling (
    resource   TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (target, resource)
) STRICT, WITHOUT ROWID;

-- Nothing has taken longer than 15 s to settle.
INSERT INTO settling SELECT resource, target, held_until - 15000, held_until FROM lane WHERE held_until < 9223372036854775807;
DROP TABLE lane;
CREATE INDEX ix_task_inflight ON task (id) WHERE terminal = 0;
