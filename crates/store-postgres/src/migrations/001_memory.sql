-- Graphs, and the memory of each. Every key starts with the graph, so that rows of one graph lie together and a database can be
-- split by graph. Texts are ordered by bytes, as in the other store, whatever the database's language is.
CREATE TABLE graph (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    -- Tells graphs of different databases apart, for folders that are synced with them.
    uid UUID NOT NULL DEFAULT gen_random_uuid(),
    -- No limit where there is none. The last is in calls a second at each server.
    max_notes BIGINT CHECK (max_notes >= 0),
    max_bytes BIGINT CHECK (max_bytes >= 0),
    max_rate BIGINT CHECK (max_rate > 0)
);

-- The last numbers given. A writer locks the row of its graph until it commits: so changes commit in the order of their
-- numbers, and a reader that has seen a number has seen all smaller ones. bytes is the length of the log, which has every text
-- that memory has or had.
CREATE TABLE memory_head (
    graph BIGINT PRIMARY KEY REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL DEFAULT 0,
    entity BIGINT NOT NULL DEFAULT 0,
    observation BIGINT NOT NULL DEFAULT 0,
    relation BIGINT NOT NULL DEFAULT 0,
    bytes BIGINT NOT NULL DEFAULT 0
);

-- Unique names are checked at commit: a list of changes may swap two names.
CREATE TABLE entity (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    type TEXT NOT NULL,
    description TEXT,
    created_ns BIGINT NOT NULL,
    updated_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, id),
    UNIQUE (graph, name_key) DEFERRABLE INITIALLY DEFERRED
);

CREATE TABLE alias (
    graph BIGINT NOT NULL,
    entity BIGINT NOT NULL,
    position INTEGER NOT NULL,
    alias TEXT NOT NULL,
    alias_key TEXT COLLATE "C" NOT NULL,
    -- Because an alias may be longer than an entry of an index may be. A column, because an index on a function does not serve a
    -- role that the rules for rows apply to: the function could tell of other rows.
    alias_hash BIGINT GENERATED ALWAYS AS (hashtextextended(alias_key, 0)) STORED,
    PRIMARY KEY (graph, entity, position),
    FOREIGN KEY (graph, entity) REFERENCES entity ON DELETE CASCADE
);
CREATE INDEX alias_by_hash ON alias (graph, alias_hash);

CREATE TABLE observation (
    graph BIGINT NOT NULL,
    id BIGINT NOT NULL,
    entity BIGINT NOT NULL,
    text TEXT NOT NULL,
    created_ns BIGINT NOT NULL,
    updated_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, id),
    FOREIGN KEY (graph, entity) REFERENCES entity ON DELETE CASCADE
);
CREATE INDEX observation_by_entity ON observation (graph, entity);

CREATE TABLE relation (
    graph BIGINT NOT NULL,
    id BIGINT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    created_ns BIGINT NOT NULL,
    updated_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, id),
    UNIQUE (graph, source, target, type) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (graph, source) REFERENCES entity ON DELETE CASCADE,
    FOREIGN KEY (graph, target) REFERENCES entity ON DELETE CASCADE
);
CREATE INDEX relation_by_target ON relation (graph, target, type);
CREATE INDEX relation_by_type ON relation (graph, type);

CREATE TABLE change (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    at_ns BIGINT NOT NULL,
    client TEXT NOT NULL,
    tool TEXT NOT NULL,
    undoes BIGINT,
    PRIMARY KEY (graph, number),
    UNIQUE (graph, undoes)
);

-- One row for each item that a change touched: JSON of what it was and what it became.
CREATE TABLE change_step (
    graph BIGINT NOT NULL,
    change BIGINT NOT NULL,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('entity', 'observation', 'relation')),
    id BIGINT NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (graph, change, position),
    FOREIGN KEY (graph, change) REFERENCES change ON DELETE CASCADE
);
-- Texts with a link that were replaced or deleted: when a note is renamed, they are tied too, for they may come back.
CREATE INDEX change_step_linking ON change_step (graph, change, position) WHERE strpos(before, '[[') > 0;

CREATE TABLE context (
    graph BIGINT NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    entity BIGINT NOT NULL,
    set_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, client),
    FOREIGN KEY (graph, entity) REFERENCES entity ON DELETE CASCADE
);
CREATE INDEX context_by_entity ON context (graph, entity);

-- Contexts that a change replaced, for its undo. Deleted when the client sets its context itself. No reference to the entities:
-- they may be deleted.
CREATE TABLE change_context (
    graph BIGINT NOT NULL,
    change BIGINT NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    before BIGINT,
    after BIGINT,
    set_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, change, client),
    FOREIGN KEY (graph, change) REFERENCES change ON DELETE CASCADE
);
CREATE INDEX change_context_by_client ON change_context (graph, client);

-- Vectors, a byte for each dimension. They can be computed again, so they are not logged.
CREATE TABLE entity_vector (
    graph BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    entity BIGINT NOT NULL,
    text_hash BIGINT NOT NULL,
    scale REAL NOT NULL,
    codes BYTEA NOT NULL,
    PRIMARY KEY (graph, space, entity),
    FOREIGN KEY (graph, entity) REFERENCES entity ON DELETE CASCADE
);
CREATE INDEX entity_vector_by_owner ON entity_vector (graph, entity);

CREATE TABLE observation_vector (
    graph BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    observation BIGINT NOT NULL,
    text_hash BIGINT NOT NULL,
    scale REAL NOT NULL,
    codes BYTEA NOT NULL,
    PRIMARY KEY (graph, space, observation),
    FOREIGN KEY (graph, observation) REFERENCES observation ON DELETE CASCADE
);
CREATE INDEX observation_vector_by_owner ON observation_vector (graph, observation);

-- Who computes the vector of a text, and until when: a claim that is not renewed may be taken over.
CREATE TABLE text_claim (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    space TEXT COLLATE "C" NOT NULL,
    text_hash BIGINT NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (graph, space, text_hash)
);

-- Calls that were applied, with their results as JSON: one that is made again changes nothing. Deleted after a while.
CREATE TABLE memory_request (
    graph BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    at_ns BIGINT NOT NULL,
    change BIGINT NOT NULL,
    outcomes TEXT NOT NULL,
    PRIMARY KEY (graph, key),
    FOREIGN KEY (graph, change) REFERENCES change ON DELETE CASCADE
);
CREATE INDEX memory_request_by_time ON memory_request (graph, at_ns);

-- The note that a link in a text of memory means, now that the note has another name than the link. No reference to the
-- owner: an undo may restore it, and ids are never reused. No unique key either: a target may be longer than an entry of an
-- index may be. The writer, who holds the lock of the graph, replaces the tie of the same owner and target.
CREATE TABLE note_tie (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('entity', 'observation')),
    owner BIGINT NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    path_hash BIGINT GENERATED ALWAYS AS (hashtextextended(path, 0)) STORED
);
CREATE INDEX note_tie_by_owner ON note_tie (graph, kind, owner);
CREATE INDEX note_tie_by_path_hash ON note_tie (graph, path_hash);
