-- The time as the last process saw it, in one row. The next one does not go back behind it.
CREATE TABLE clock (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    seen   INTEGER NOT NULL
) STRICT;
