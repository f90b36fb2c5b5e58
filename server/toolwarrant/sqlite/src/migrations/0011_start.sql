-- Creates a database of layout 11. Times are milliseconds since the Unix epoch. A file in this folder is never edited: a later
-- layout gets a file of its own, with what changes.

-- An application asks under its key for one thing at a time; the index decides races between repeated calls. A call without a key
-- of its own is told from others by its fingerprint, on the lock of its target.
CREATE TABLE task (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    application TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    tool        TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    terminal    INTEGER NOT NULL CHECK (terminal = (status IS NOT NULL)),
    status      TEXT,
    wake_at     INTEGER,
    finished_at INTEGER,
    -- The machine's task as JSON; the columns above repeat of it what is searched for.
    state       TEXT    NOT NULL,
    sealed      BLOB    CHECK (terminal = 0 OR sealed IS NULL),
    idem_key    TEXT,
    -- The call that made the task. `arguments` is JSON without secrets.
    request_id  TEXT,
    key_id      TEXT,
    arguments   TEXT
) STRICT;

CREATE UNIQUE INDEX ux_task_inflight ON task (application, idem_key) WHERE terminal = 0 AND idem_key IS NOT NULL;
CREATE INDEX ix_task_inflight ON task (id) WHERE terminal = 0;
CREATE INDEX ix_task_finished ON task (finished_at, id) WHERE terminal = 1;
-- An application reads its tasks in pages, newest first. Ids grow with time, so new entries stand next to each other.
CREATE INDEX ix_task_application ON task (application, id);
-- What the books are compared by, of which there is little beside all that went well: tasks that must have a refund.
CREATE INDEX ix_task_failed_silent ON task (id) WHERE status = 'failed_silent';

-- Only ever added to; goes with its task.
CREATE TABLE task_event (
    task_id  BLOB    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    version  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    phase    TEXT    NOT NULL,
    what     TEXT    NOT NULL,
    -- 1: `what` is the event as JSON; 0: a sentence.
    is_event INTEGER NOT NULL DEFAULT 0 CHECK (is_event IN (0, 1)),
    PRIMARY KEY (task_id, version)
) STRICT, WITHOUT ROWID;

-- When the cool-down of a target began, and until when it lasts. The tasks in flight say which targets are locked; the one
-- process that writes keeps these in memory, so that a task costs no page at random. Outlives the task.
CREATE TABLE settling (
    resource   TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (target, resource)
) STRICT, WITHOUT ROWID;

-- Only ever added to; outlives the task, and the application. Without gaps, as no row is ever deleted.
CREATE TABLE ledger (
    number      INTEGER PRIMARY KEY,
    task_id     BLOB    NOT NULL,
    application TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('charge', 'reversal', 'refund')),
    at          INTEGER NOT NULL,
    UNIQUE (task_id, kind)
) STRICT;

-- Tasks that have a refund; then refunds, newest first, of all applications and of one.
CREATE INDEX ix_ledger_refund ON ledger (task_id) WHERE kind = 'refund';
CREATE INDEX ix_ledger_refund_number ON ledger (number) WHERE kind = 'refund';
CREATE INDEX ix_ledger_refund_application ON ledger (application, number) WHERE kind = 'refund';

-- What must not happen twice: an entry is made once, in the transaction that it guards, and kept until its time is over.
CREATE TABLE mark (
    space TEXT    NOT NULL,
    key   BLOB    NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_mark_until ON mark (until);

-- A deleted application keeps its id; its name is free, so `name` is the id and `former_name` what it was.
CREATE TABLE application (
    -- The order in which they were made.
    number              INTEGER PRIMARY KEY,
    id                  TEXT    NOT NULL UNIQUE,
    name                TEXT    NOT NULL UNIQUE,
    -- Names, as a JSON array.
    permissions         TEXT    NOT NULL,
    requests_per_minute INTEGER NOT NULL,
    -- 1: every target of every resource, those to come included; 0: those in the tables below.
    every_target        INTEGER NOT NULL CHECK (every_target IN (0, 1)),
    created_at          INTEGER NOT NULL,
    -- A JSON object of texts.
    labels              TEXT    NOT NULL DEFAULT '{}',
    suspended_at        INTEGER,
    deleted_at          INTEGER,
    former_name         TEXT    CHECK ((former_name IS NULL) = (deleted_at IS NULL))
) STRICT;

-- What an application sees is granted by resource and identifier: a tray and a printer may have the same one.
CREATE TABLE application_resource (
    application  TEXT    NOT NULL REFERENCES application (id),
    resource     TEXT    NOT NULL,
    -- 1: every target of the resource, those to come included; 0: those in resource_target.
    every_target INTEGER NOT NULL CHECK (every_target IN (0, 1)),
    PRIMARY KEY (application, resource)
) STRICT, WITHOUT ROWID;

CREATE TABLE resource_target (
    application TEXT NOT NULL,
    resource    TEXT NOT NULL,
    target      TEXT NOT NULL,
    PRIMARY KEY (application, resource, target),
    FOREIGN KEY (application, resource) REFERENCES application_resource (application, resource) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Prefixes that an application sees, and single targets that are excepted from these or from every target.
CREATE TABLE resource_rule (
    application TEXT NOT NULL,
    resource    TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('prefix', 'exception')),
    text        TEXT NOT NULL,
    PRIMARY KEY (application, resource, kind, text),
    FOREIGN KEY (application, resource) REFERENCES application_resource (application, resource) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A key has at most two live secrets, and none once it is revoked.
CREATE TABLE api_key (
    id                  TEXT    NOT NULL PRIMARY KEY,
    application         TEXT    NOT NULL REFERENCES application (id),
    created_at          INTEGER NOT NULL,
    expires_at          INTEGER,
    latest_verifier     BLOB    CHECK (length(latest_verifier) = 32),
    latest_sealed       BLOB    CHECK ((latest_sealed IS NULL) = (latest_verifier IS NULL)),
    previous_verifier   BLOB    CHECK (length(previous_verifier) = 32),
    previous_sealed     BLOB    CHECK ((previous_sealed IS NULL) = (previous_verifier IS NULL)),
    -- A JSON object of texts.
    labels              TEXT    NOT NULL DEFAULT '{}',
    suspended_at        INTEGER,
    latest_created_at   INTEGER,
    previous_created_at INTEGER,
    previous_ends_at    INTEGER
) STRICT, WITHOUT ROWID;

-- The last use of each secret, also of those that have ended. Rows are written each minute.
CREATE TABLE secret_use (
    key      TEXT    NOT NULL,
    verifier BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    address  TEXT,
    PRIMARY KEY (key, verifier)
) STRICT, WITHOUT ROWID;

-- The secrets of keys that are off since the database was restored. They go back to their keys once an operator confirms these.
CREATE TABLE unconfirmed_key (
    id                TEXT    NOT NULL PRIMARY KEY REFERENCES api_key (id),
    latest_verifier   BLOB    NOT NULL,
    latest_sealed     BLOB    NOT NULL,
    previous_verifier BLOB,
    previous_sealed   BLOB
) STRICT, WITHOUT ROWID;

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

-- What is recorded of the audit trail, so that a missing end or file shows: a seal that is on the disk, and the last seal that was
-- pruned. The last two columns are not used.
CREATE TABLE audit_anchor (
    one           INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    newest_number INTEGER NOT NULL,
    newest_hash   BLOB    NOT NULL CHECK (length(newest_hash) = 32),
    pruned_number INTEGER NOT NULL,
    pruned_hash   BLOB    NOT NULL CHECK (length(pruned_hash) = 32),
    birth_file    TEXT    NOT NULL,
    birth_length  INTEGER NOT NULL
) STRICT;

-- The time as the last process saw it, in one row. The next one does not go back behind it.
CREATE TABLE clock (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    seen   INTEGER NOT NULL
) STRICT;

-- Which database this is, in one row. What may be lost of it beside its own files is told by the watermark beside it.
CREATE TABLE identity (
    number      INTEGER PRIMARY KEY CHECK (number = 1),
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    -- Whoever has the database to itself. A process that finds another one here writes no more.
    owner       BLOB    CHECK (length(owner) = 16),
    -- How often the watermark was raised, and when that was done last.
    sequence    INTEGER NOT NULL,
    marked_at   INTEGER NOT NULL,
    -- When it was restored from a backup, if it was.
    restored_at INTEGER
) STRICT;

INSERT INTO identity VALUES (1, randomblob(16), NULL, 0, 0, NULL);
