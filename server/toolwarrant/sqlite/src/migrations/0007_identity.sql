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

-- The secrets of keys that are off since the database was restored. They go back to their keys once an operator confirms these.
CREATE TABLE unconfirmed_key (
    id                TEXT    NOT NULL PRIMARY KEY REFERENCES api_key (id),
    latest_verifier   BLOB    NOT NULL,
    latest_sealed     BLOB    NOT NULL,
    previous_verifier BLOB,
    previous_sealed   BLOB
) STRICT, WITHOUT ROWID;
