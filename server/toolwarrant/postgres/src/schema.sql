-- The tables of a store, in the schema that comes first in the search path. Times are milliseconds since the Unix epoch.

-- The store itself, in one row.
CREATE TABLE cluster (
    one         boolean PRIMARY KEY CHECK (one),
    -- Programs that know another layout are refused.
    layout      integer NOT NULL,
    -- The fingerprint of the master key.
    key         bytea   NOT NULL,
    -- The timeline of the server that has everything that was acknowledged. In any other one, nothing lands.
    timeline    text    NOT NULL,
    -- The setting of a synchronous standby in that timeline: true if a failover loses nothing that was acknowledged.
    synchronous boolean NOT NULL DEFAULT false,
    -- The loss of acknowledged writes that a process has found. Then no process leads, until an operator decides.
    lost        text,
    -- The number of the latest act.
    acts        bigint  NOT NULL DEFAULT 0,
    -- The latest time that a leader has recorded.
    seen        bigint,
    -- The time at which the data was restored from a backup, if it was.
    restored_at bigint
);

-- The runs of processes that lead or have led. A dead run has not left, and its process has died.
CREATE TABLE replica (
    -- Grows, and begins with the time in microseconds, so that a store that has forgotten runs does not number two alike.
    epoch   bigint  PRIMARY KEY,
    name    text    NOT NULL,
    -- The machine that it runs on.
    machine text    NOT NULL,
    program text    NOT NULL,
    -- The length of its lease in milliseconds.
    lease   integer NOT NULL,
    beat    bigint  NOT NULL DEFAULT 0,
    -- The time of the latest beat, by the clock of this server.
    beaten  bigint  NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    state   text    NOT NULL DEFAULT 'serving' CHECK (state IN ('serving', 'dead', 'left', 'evicted'))
) WITH (fillfactor = 50);

-- At most one run leads.
CREATE UNIQUE INDEX ix_replica_serving ON replica ((true)) WHERE state IN ('serving', 'dead');

-- One row for each connection of the leader that writes. It counts batches, so that a batch lands once. Without the row, nothing
-- of that epoch lands. A batch finds the row by its count, too: while an old transaction is open, the former versions of the
-- row cannot be removed, and there are thousands in a minute.
CREATE TABLE writer (
    epoch   bigint  NOT NULL,
    number  integer NOT NULL,
    batches bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (epoch, number, batches)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Tasks in flight. Columns that never change come first, so that a step writes little. The state of version 0 is the policy: the
-- rest of it follows from the times of acceptance and start.
CREATE TABLE task (
    id          uuid    NOT NULL PRIMARY KEY,
    created_at  bigint  NOT NULL,
    fingerprint bytea   NOT NULL,
    application text    NOT NULL,
    tool        text    NOT NULL,
    resource    text    NOT NULL,
    target      text    NOT NULL,
    idem_key    text,
    request_id  text    NOT NULL,
    key_id      text    NOT NULL,
    arguments   text,
    sealed      bytea   NOT NULL,
    version     integer NOT NULL,
    wake_at     bigint,
    state       text    NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX ix_task_key ON task (application, idem_key) WHERE idem_key IS NOT NULL;

-- A target that a task holds, or that cools down. One statement takes the lock and reads the cool-down.
CREATE TABLE target (
    target   text NOT NULL,
    resource text NOT NULL,
    task     uuid,
    since    bigint,
    until    bigint,
    PRIMARY KEY (target, resource)
) WITH (fillfactor = 50);
CREATE INDEX ix_target_until ON target (until) WHERE task IS NULL;

-- Tasks that have ended, a day of acceptance in each partition. Ids begin with the millisecond.
CREATE TABLE ended (
    id          uuid    NOT NULL PRIMARY KEY,
    created_at  bigint  NOT NULL,
    finished_at bigint,
    application text    NOT NULL,
    tool        text    NOT NULL,
    resource    text    NOT NULL,
    target      text    NOT NULL,
    request_id  text    NOT NULL,
    key_id      text    NOT NULL,
    arguments   text,
    version     integer NOT NULL,
    status      text    NOT NULL,
    state       text    NOT NULL
) PARTITION BY RANGE (id);
-- The last two columns spare counts by status a read of each row.
CREATE INDEX ix_ended_application ON ended (application, id) INCLUDE (status, tool);
CREATE TABLE ended_default PARTITION OF ended DEFAULT;

-- The timelines of tasks, in the same days. If `is_event` is true, `what` is the event as JSON.
CREATE TABLE event (
    task     uuid    NOT NULL,
    version  integer NOT NULL,
    at       bigint  NOT NULL,
    phase    text    NOT NULL,
    what     text    NOT NULL,
    is_event boolean NOT NULL,
    PRIMARY KEY (task, version)
) PARTITION BY RANGE (task);
CREATE TABLE event_default PARTITION OF event DEFAULT;

-- Charges, reversals and refunds. A number begins with the transaction, so numbers below those of the oldest open transaction
-- are complete.
CREATE TABLE ledger (
    task        uuid   NOT NULL,
    kind        text   NOT NULL CHECK (kind IN ('charge', 'reversal', 'refund')),
    application text   NOT NULL,
    at          bigint NOT NULL,
    number      bigint NOT NULL,
    PRIMARY KEY (task, kind)
);
CREATE UNIQUE INDEX ix_ledger_number ON ledger (number);
CREATE INDEX ix_ledger_refund ON ledger (number) WHERE kind = 'refund';
CREATE INDEX ix_ledger_refund_application ON ledger (application, number) WHERE kind = 'refund';

-- What must not happen twice.
CREATE TABLE mark (
    space text   NOT NULL,
    key   bytea  NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (space, key)
);
CREATE INDEX ix_mark_until ON mark (until);

-- Applications and keys. Permissions, grants and labels are JSON.
CREATE TABLE application (
    id                  text    NOT NULL PRIMARY KEY,
    number              bigint  GENERATED ALWAYS AS IDENTITY,
    name                text    NOT NULL,
    permissions         text    NOT NULL,
    requests_per_minute bigint  NOT NULL,
    grants              text    NOT NULL,
    labels              text    NOT NULL,
    created_at          bigint  NOT NULL,
    suspended_at        bigint,
    deleted_at          bigint
);
CREATE UNIQUE INDEX ix_application_name ON application (name) WHERE deleted_at IS NULL;

CREATE TABLE api_key (
    id           text   NOT NULL PRIMARY KEY,
    application  text   NOT NULL REFERENCES application (id),
    created_at   bigint NOT NULL,
    expires_at   bigint,
    suspended_at bigint,
    labels       text   NOT NULL,
    -- The live secrets, sealed, as JSON.
    secrets      text   NOT NULL
);
CREATE INDEX ix_api_key_application ON api_key (application);

-- Keys that are off since the data was restored, with their secrets.
CREATE TABLE unconfirmed_key (
    id      text NOT NULL PRIMARY KEY,
    secrets text NOT NULL
);

CREATE TABLE secret_use (
    key      text   NOT NULL,
    verifier bytea  NOT NULL,
    at       bigint NOT NULL,
    address  text,
    PRIMARY KEY (key, verifier)
) WITH (fillfactor = 50);

-- The requests of each application in each second of the last minute, so that its budget goes on after a takeover.
CREATE TABLE request_count (
    second      bigint NOT NULL,
    application text   NOT NULL,
    requests    bigint NOT NULL,
    PRIMARY KEY (second, application)
) WITH (fillfactor = 50);

-- Who changed what. `act` is the act as JSON; the columns before it repeat what is searched for. The line of an act belongs into
-- the trail of the replica at which it was made.
CREATE TABLE act (
    number   bigint  NOT NULL PRIMARY KEY,
    id       text    NOT NULL UNIQUE,
    at       bigint  NOT NULL,
    operator text    NOT NULL,
    command  text    NOT NULL,
    object   text,
    act      text    NOT NULL,
    trail    text    NOT NULL
);
CREATE INDEX ix_act_object ON act (object, number) WHERE object IS NOT NULL;
CREATE INDEX ix_act_trail ON act (trail, number);

-- The newest seal of each audit trail, as JSON. Each replica has a trail.
CREATE TABLE audit_anchor (
    trail  text NOT NULL PRIMARY KEY,
    anchor text NOT NULL
);

-- The small files of the service.
CREATE TABLE file (
    name    text  PRIMARY KEY,
    content bytea NOT NULL
);

-- Replicas make and drop the partition of a day with these functions, which run as the owner of the tables. So the account of a
-- replica needs no right to define tables, and cannot drop a day that is still shown.
CREATE FUNCTION make_day(parent text, day bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF parent NOT IN ('ended', 'event') THEN
        RAISE EXCEPTION '% has no partitions', parent;
    END IF;
    EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
        parent || '_' || lpad(day::text, 6, '0'), parent,
        lpad(to_hex(day * 86400000), 12, '0') || repeat('0', 20), lpad(to_hex((day + 1) * 86400000), 12, '0') || repeat('0', 20));
END $$;

CREATE FUNCTION drop_day(parent text, day bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF parent NOT IN ('ended', 'event') OR day + 7 > extract(epoch FROM clock_timestamp()) / 86400 THEN
        RAISE EXCEPTION 'day % of % is not old enough', day, parent;
    END IF;
    EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || lpad(day::text, 6, '0'));
END $$;

REVOKE EXECUTE ON FUNCTION make_day, drop_day FROM PUBLIC;

-- A caller must not put other tables in the place of these.
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION make_day SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION drop_day SET search_path = %I, pg_temp', current_schema());
END $$;
