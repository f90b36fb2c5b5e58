-- What must not happen twice: an entry is made once, in the transaction that it guards, and kept until its time is over.
CREATE TABLE mark (
    space TEXT    NOT NULL,
    key   BLOB    NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_mark_until ON mark (until);
