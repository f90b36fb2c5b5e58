-- The requests of each application in each second of the last minute, so that its budget goes on after a restart.
CREATE TABLE request_count (
    second      INTEGER NOT NULL,
    application TEXT    NOT NULL,
    requests    INTEGER NOT NULL,
    PRIMARY KEY (second, application)
) STRICT, WITHOUT ROWID;
