-- Contexts that a change moved or took away, so that its undo puts them back: what each was and what it became. Forgotten when
-- the client sets its context itself. No reference to the entities: they may be gone.
CREATE TABLE change_context (
    change INTEGER NOT NULL REFERENCES change (number),
    client TEXT NOT NULL,
    before INTEGER,
    after INTEGER,
    set_ns INTEGER NOT NULL,
    PRIMARY KEY (change, client)
) STRICT, WITHOUT ROWID;
CREATE INDEX change_context_by_client ON change_context (client);
