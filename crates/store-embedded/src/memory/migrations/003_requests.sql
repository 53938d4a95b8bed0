-- Calls that were carried out, so that one that is made again is not: what each change of it gave, as JSON. Forgotten after
-- a while.
CREATE TABLE request (
    key TEXT PRIMARY KEY,
    at_ns INTEGER NOT NULL,
    change INTEGER NOT NULL REFERENCES change (number),
    outcomes TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX request_by_time ON request (at_ns);
