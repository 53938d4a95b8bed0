-- Notes, as rows of exact bytes.

-- The last number and time given. A writer locks the row of its graph until it commits, as in memory_head. notes and bytes are of
-- the current notes, kept_bytes of the versions that writes replaced.
CREATE TABLE note_head (
    graph BIGINT PRIMARY KEY REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL DEFAULT 0,
    at_ns BIGINT NOT NULL DEFAULT 0,
    notes BIGINT NOT NULL DEFAULT 0,
    bytes BIGINT NOT NULL DEFAULT 0,
    kept_bytes BIGINT NOT NULL DEFAULT 0
);

-- path_key is the path in lower case, by the program's rules, which are not those of the database.
CREATE TABLE note (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    path TEXT COLLATE "C" NOT NULL,
    path_key TEXT COLLATE "C" NOT NULL,
    bytes BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    modified_ns BIGINT NOT NULL,
    -- Characters of the text.
    chars BIGINT,
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

-- The feed: the last change of each path.
CREATE TABLE note_change (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    at_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, change, path)
);
CREATE INDEX note_change_by_path ON note_change (graph, path);

-- Calls that were applied, with the path of their first change. Deleted after a while.
CREATE TABLE note_request (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    key TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    at_ns BIGINT NOT NULL,
    PRIMARY KEY (graph, key)
);
CREATE INDEX note_request_by_time ON note_request (graph, at_ns);

-- Who wrote which version of which note. The texts before are in note_version.
CREATE TABLE note_write (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    change BIGINT NOT NULL,
    at_ns BIGINT NOT NULL,
    client TEXT NOT NULL,
    -- Files that were redacted.
    unlisted INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (graph, change)
);

-- One row for each note of a write. The keys are paths in lower case, as in note. kept is the position of the old text in
-- note_version.
CREATE TABLE note_write_file (
    graph BIGINT NOT NULL,
    change BIGINT NOT NULL,
    position INTEGER NOT NULL,
    action TEXT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    path_key TEXT COLLATE "C" NOT NULL,
    from_path TEXT COLLATE "C",
    from_key TEXT COLLATE "C",
    old_hash BYTEA,
    old_chars BIGINT,
    old_ns BIGINT,
    new_hash BYTEA,
    new_chars BIGINT,
    kept INTEGER,
    PRIMARY KEY (graph, change, position),
    FOREIGN KEY (graph, change) REFERENCES note_write ON DELETE CASCADE
);
CREATE INDEX note_write_file_by_path ON note_write_file (graph, path_key, change);
CREATE INDEX note_write_file_by_from ON note_write_file (graph, from_key, change) WHERE from_key IS NOT NULL;

-- Which version of a note each client was last shown, by any server: a write is checked against it. Losing rows loses no note;
-- clients have to read again. The client is the hash of its name. parts are the characters that were shown, unless all were.
CREATE TABLE shown_note (
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    client BYTEA NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    is_whole BOOLEAN NOT NULL,
    parts INT8MULTIRANGE NOT NULL,
    at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (graph, client, path)
);
