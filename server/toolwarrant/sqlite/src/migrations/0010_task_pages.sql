-- An application reads its tasks in pages, newest first. Ids grow with time, so new entries stand next to each other.
CREATE INDEX ix_task_application ON task (application, id);
