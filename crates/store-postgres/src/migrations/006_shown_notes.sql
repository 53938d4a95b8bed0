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
ALTER TABLE shown_note ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_graph ON shown_note
    USING (graph = (SELECT nullif(current_setting('quipu.graph', true), '')::bigint));
