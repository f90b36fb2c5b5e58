-- Times are milliseconds since the Unix epoch. A file that has been released is never edited: what changes comes in the next.

-- An application asks under its key for one thing at a time; the index decides races between repeated calls.
CREATE TABLE task (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    application TEXT    NOT NULL,
    idem_key    TEXT    NOT NULL,
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
    sealed      BLOB    CHECK (terminal = 0 OR sealed IS NULL)
) STRICT;

CREATE UNIQUE INDEX ux_task_inflight ON task (application, idem_key) WHERE terminal = 0;
CREATE INDEX ix_task_inflight ON task (id) WHERE terminal = 0;
CREATE INDEX ix_task_finished ON task (finished_at, id) WHERE terminal = 1;

-- Only ever added to; goes with its task.
CREATE TABLE task_event (
    task_id BLOB    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    phase   TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    PRIMARY KEY (task_id, version)
) STRICT, WITHOUT ROWID;

-- One write at a time on a target: the latest that took it, and until when. The largest integer while that is in flight,
-- then the moment at which the target has settled. Outlives the task.
CREATE TABLE lane (
    resource   TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    task_id    BLOB    NOT NULL,
    held_until INTEGER NOT NULL,
    PRIMARY KEY (resource, target)
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

CREATE TABLE application (
    -- The order in which they were made.
    number              INTEGER PRIMARY KEY,
    id                  TEXT    NOT NULL UNIQUE,
    name                TEXT    NOT NULL UNIQUE,
    -- Names, as a JSON array.
    permissions         TEXT    NOT NULL,
    requests_per_minute INTEGER NOT NULL,
    -- 1: every target, those to come included; 0: those in application_target.
    every_target        INTEGER NOT NULL CHECK (every_target IN (0, 1)),
    created_at          INTEGER NOT NULL
) STRICT;

CREATE TABLE application_target (
    application TEXT NOT NULL REFERENCES application (id),
    target      TEXT NOT NULL,
    PRIMARY KEY (application, target)
) STRICT, WITHOUT ROWID;

-- A key has at most two live secrets, and none once it is revoked.
CREATE TABLE api_key (
    id                TEXT    NOT NULL PRIMARY KEY,
    application       TEXT    NOT NULL REFERENCES application (id),
    created_at        INTEGER NOT NULL,
    expires_at        INTEGER,
    latest_verifier   BLOB    CHECK (length(latest_verifier) = 32),
    latest_sealed     BLOB    CHECK ((latest_sealed IS NULL) = (latest_verifier IS NULL)),
    previous_verifier BLOB    CHECK (length(previous_verifier) = 32),
    previous_sealed   BLOB    CHECK ((previous_sealed IS NULL) = (previous_verifier IS NULL))
) STRICT, WITHOUT ROWID;
