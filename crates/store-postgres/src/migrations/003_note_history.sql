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

-- Characters of the text; unknown for notes that were written before.
ALTER TABLE note ADD chars BIGINT;
