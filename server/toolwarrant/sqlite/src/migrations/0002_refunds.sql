-- What the books are compared by, of which there is little beside all that went well: tasks that must have a refund, and those
-- that have one.
CREATE INDEX ix_task_failed_silent ON task (id) WHERE status = 'failed_silent';
CREATE INDEX ix_ledger_refund ON ledger (task_id) WHERE kind = 'refund';
