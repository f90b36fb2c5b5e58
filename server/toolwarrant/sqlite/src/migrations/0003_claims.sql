-- A call without a key of its own is told from others by its fingerprint, on the lane of its target, which it holds. So it needs
-- no place in the index of keys: one less that is written at random with each task.
DROP INDEX ux_task_inflight;
ALTER TABLE task ADD COLUMN given_key TEXT;
UPDATE task SET given_key = idem_key WHERE idem_key NOT LIKE ' %';
ALTER TABLE task DROP COLUMN idem_key;
ALTER TABLE task RENAME COLUMN given_key TO idem_key;
CREATE UNIQUE INDEX ux_task_inflight ON task (application, idem_key) WHERE terminal = 0 AND idem_key IS NOT NULL;

-- The lanes that are held name the tasks in flight.
DROP INDEX ix_task_inflight;
