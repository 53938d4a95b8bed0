-- Notes, as rows of exact bytes.

-- The last number and time given. A writer locks the row of its graph until it commits, as in memory_head.
CREATE TABLE note_head (
    graph BIGINT PRIMARY KEY REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL DEFAULT 0,
    at_ns BIGINT NOT NULL DEFAULT 0
);
INSERT INTO note_head (graph) SELECT id FROM graph;

-- path_key is the path in lower case, by the program's rules, which are not those of the database.
CREATE TABLE note (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    path TEXT COLLATE "C" NOT NULL,
    path_key TEXT COLLATE "C" NOT NULL,
    bytes BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    modified_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, path)
);
CREATE INDEX note_by_key ON note (graph, path_key);
-- Markdown is compressed by the database; the faster method where it has one.
DO $$ BEGIN ALTER TABLE note ALTER bytes SET COMPRESSION lz4; EXCEPTION WHEN feature_not_supported THEN NULL; END $$;

-- What writes replaced, moved or deleted.
CREATE TABLE note_version (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL,
    position INTEGER NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    bytes BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    modified_ns BIGINT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('deleted', 'replaced', 'moved')),
    -- The new path of a moved note.
    moved_to TEXT COLLATE "C",
    at_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, change, position)
);
CREATE INDEX note_version_by_path ON note_version (graph, path, change);
CREATE INDEX note_version_moved_to ON note_version (graph, moved_to) WHERE moved_to IS NOT NULL;

-- The feed: which paths each change touched.
CREATE TABLE note_change (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    at_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, change, path)
);

-- Calls that were applied, with the path of their first change. Deleted after a while.
CREATE TABLE note_request (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    key TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    at_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, key)
);
CREATE INDEX note_request_by_time ON note_request (graph, at_ns);
