-- Who changed what. Rows are only added, in the transaction of the change; `act` is the act as JSON, and the columns before it
-- repeat what is searched for. `has_line` is 1 once the line of the act is in the audit trail.
CREATE TABLE act (
    number   INTEGER PRIMARY KEY,
    id       TEXT    NOT NULL UNIQUE,
    at       INTEGER NOT NULL,
    operator TEXT    NOT NULL,
    command  TEXT    NOT NULL,
    object   TEXT,
    act      TEXT    NOT NULL,
    has_line INTEGER NOT NULL DEFAULT 0 CHECK (has_line IN (0, 1))
) STRICT;

CREATE INDEX ix_act_object ON act (object, number) WHERE object IS NOT NULL;
CREATE INDEX ix_act_without_line ON act (number) WHERE has_line = 0;

-- The call that made a task. `arguments` is JSON without secrets.
ALTER TABLE task ADD COLUMN request_id TEXT;
ALTER TABLE task ADD COLUMN key_id TEXT;
ALTER TABLE task ADD COLUMN arguments TEXT;

-- Refunds, newest first, of all applications and of one.
CREATE INDEX ix_ledger_refund_number ON ledger (number) WHERE kind = 'refund';
CREATE INDEX ix_ledger_refund_application ON ledger (application, number) WHERE kind = 'refund';

-- 1: `what` is the event as JSON; 0: a sentence.
ALTER TABLE task_event ADD COLUMN is_event INTEGER NOT NULL DEFAULT 0 CHECK (is_event IN (0, 1));

-- The life of an application. A deleted one keeps its id; its name is free, so `name` is the id and `former_name` what it was.
-- Labels are a JSON object of texts.
ALTER TABLE application ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE application ADD COLUMN suspended_at INTEGER;
ALTER TABLE application ADD COLUMN deleted_at INTEGER;
ALTER TABLE application ADD COLUMN former_name TEXT CHECK ((former_name IS NULL) = (deleted_at IS NULL));

-- Prefixes that an application sees, and single targets that are excepted from these or from every target.
CREATE TABLE resource_rule (
    application TEXT NOT NULL,
    resource    TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('prefix', 'exception')),
    text        TEXT NOT NULL,
    PRIMARY KEY (application, resource, kind, text),
    FOREIGN KEY (application, resource) REFERENCES application_resource (application, resource) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The last use of each secret, also of those that have ended. Rows are written each minute.
CREATE TABLE secret_use (
    key      TEXT    NOT NULL,
    verifier BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    address  TEXT,
    PRIMARY KEY (key, verifier)
) STRICT, WITHOUT ROWID;

-- The life of a key and of its secrets. The age of a secret from before this layout is not known.
ALTER TABLE api_key ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE api_key ADD COLUMN suspended_at INTEGER;
ALTER TABLE api_key ADD COLUMN latest_created_at INTEGER;
ALTER TABLE api_key ADD COLUMN previous_created_at INTEGER;
ALTER TABLE api_key ADD COLUMN previous_ends_at INTEGER;
