-- What agents learn, and the log of every change to it. AUTOINCREMENT: an id is never given twice.
CREATE TABLE entity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    description TEXT,
    created_ns INTEGER NOT NULL,
    updated_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE alias (
    entity INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    alias TEXT NOT NULL,
    alias_key TEXT NOT NULL,
    PRIMARY KEY (entity, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX alias_by_key ON alias (alias_key, entity);

CREATE TABLE observation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entity INTEGER NOT NULL REFERENCES entity (id),
    text TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    updated_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX observation_by_entity ON observation (entity);

CREATE TABLE relation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES entity (id),
    target INTEGER NOT NULL REFERENCES entity (id),
    type TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    updated_ns INTEGER NOT NULL,
    UNIQUE (source, target, type)
) STRICT;
CREATE INDEX relation_by_target ON relation (target, type);
CREATE INDEX relation_by_type ON relation (type);

CREATE TABLE change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ns INTEGER NOT NULL,
    client TEXT NOT NULL,
    tool TEXT NOT NULL,
    undoes INTEGER UNIQUE REFERENCES change (number)
) STRICT;

-- One row for each thing that a change touched: JSON of what it was and what it became.
CREATE TABLE change_step (
    change INTEGER NOT NULL REFERENCES change (number),
    position INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('entity', 'observation', 'relation')),
    id INTEGER NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (change, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE context (
    client TEXT PRIMARY KEY,
    entity INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    set_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX context_by_entity ON context (entity);
