-- Counts of ended tasks by status, and pages of one status, newest first. Ids grow with time, so new entries stand next to each
-- other; the last two columns spare a read of each row.
CREATE INDEX ix_task_status ON task (status, id, application, tool) WHERE terminal = 1;
