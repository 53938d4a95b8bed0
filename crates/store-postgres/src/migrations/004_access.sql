-- Limits of graphs, tokens, and the rules for rows that keep graphs apart.

-- No limit where there is none.
-- The uid tells graphs of different databases apart, for folders that are synced with them.
ALTER TABLE graph
    ADD COLUMN uid UUID NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN max_notes BIGINT CHECK (max_notes >= 0),
    ADD COLUMN max_bytes BIGINT CHECK (max_bytes >= 0);

-- How many notes a graph has and how long they are together. Counted by a trigger, so that programs of the version before count
-- too while servers are upgraded.
ALTER TABLE note_head
    ADD COLUMN notes BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
LOCK TABLE note IN SHARE ROW EXCLUSIVE MODE;
UPDATE note_head SET (notes, bytes) = (
    SELECT count(*), coalesce(sum(octet_length(note.bytes)), 0) FROM note WHERE note.graph = note_head.graph
);

CREATE FUNCTION count_notes() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = quipu AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        UPDATE note_head head SET notes = head.notes + added.notes, bytes = head.bytes + added.bytes FROM (
            SELECT graph, count(*) AS notes, sum(octet_length(bytes)) AS bytes FROM added_rows GROUP BY graph
        ) AS added WHERE head.graph = added.graph;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        UPDATE note_head head SET notes = head.notes - removed.notes, bytes = head.bytes - removed.bytes FROM (
            SELECT graph, count(*) AS notes, sum(octet_length(bytes)) AS bytes FROM removed_rows GROUP BY graph
        ) AS removed WHERE head.graph = removed.graph;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_added AFTER INSERT ON note
    REFERENCING NEW TABLE AS added_rows FOR EACH STATEMENT EXECUTE FUNCTION count_notes();
CREATE TRIGGER count_removed AFTER DELETE ON note
    REFERENCING OLD TABLE AS removed_rows FOR EACH STATEMENT EXECUTE FUNCTION count_notes();
CREATE TRIGGER count_changed AFTER UPDATE ON note
    REFERENCING OLD TABLE AS removed_rows NEW TABLE AS added_rows FOR EACH STATEMENT EXECUTE FUNCTION count_notes();

-- Tokens of clients over HTTP. The hash is that of 256 random bits: it cannot be turned back, and it is no secret.
CREATE TABLE token (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    hash BYTEA NOT NULL UNIQUE,
    created_ns BIGINT NOT NULL,
    expires_ns BIGINT
);
CREATE TABLE token_graph (
    token TEXT COLLATE "C" NOT NULL REFERENCES token (id) ON DELETE CASCADE,
    graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
    PRIMARY KEY (token, graph)
);
CREATE INDEX token_graph_by_graph ON token_graph (graph);

-- An index on a function of a column does not serve a role that the rules below apply to: the function could tell of other rows.
-- A column of its own does.
ALTER TABLE alias ADD COLUMN alias_hash BIGINT GENERATED ALWAYS AS (hashtextextended(alias_key, 0)) STORED;
CREATE INDEX alias_by_hash ON alias (graph, alias_hash);
ALTER TABLE note_tie ADD COLUMN path_hash BIGINT GENERATED ALWAYS AS (hashtextextended(path, 0)) STORED;
CREATE INDEX note_tie_by_path_hash ON note_tie (graph, path_hash);

-- A second wall between graphs, behind the `graph = $1` of every statement: a transaction sees and writes rows of the graph that
-- it has set, and none if it has set none. The owner of the tables is not bound by it.
DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'memory_head', 'entity', 'alias', 'observation', 'relation', 'change', 'change_step', 'context', 'change_context',
        'entity_vector', 'observation_vector', 'memory_request', 'note_tie',
        'note_head', 'note', 'note_version', 'note_change', 'note_request', 'note_write',
        'note_write_file'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_graph ON %I USING (graph = (SELECT nullif(current_setting(''quipu.graph'', true), '''')::bigint))',
            name
        );
    END LOOP;
END $$;
