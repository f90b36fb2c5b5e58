-- The small files of the service.
CREATE TABLE file (
    name    TEXT NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;
