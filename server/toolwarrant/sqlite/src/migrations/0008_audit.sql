-- What is recorded of the audit trail, so that a missing end or file shows: a seal that is on the disk, the last seal that was pruned,
-- and the file in which the chain began, with what that had then.
CREATE TABLE audit_anchor (
    one           INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    newest_number INTEGER NOT NULL,
    newest_hash   BLOB    NOT NULL CHECK (length(newest_hash) = 32),
    pruned_number INTEGER NOT NULL,
    pruned_hash   BLOB    NOT NULL CHECK (length(pruned_hash) = 32),
    birth_file    TEXT    NOT NULL,
    birth_length  INTEGER NOT NULL
) STRICT;
