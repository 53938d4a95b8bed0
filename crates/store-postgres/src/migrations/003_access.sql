-- What counts against the limits of a graph, tokens, and the rules for rows that keep graphs apart.

-- Counted by triggers, so that no statement can forget it.
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

-- A version also has rows in the history, and a step in other tables, so each counts with some bytes more.
CREATE FUNCTION count_versions() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = quipu AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        UPDATE note_head head SET kept_bytes = head.kept_bytes + added.bytes FROM (
            SELECT graph, sum(octet_length(bytes) + 500) AS bytes FROM added_rows GROUP BY graph
        ) AS added WHERE head.graph = added.graph;
    ELSE
        UPDATE note_head head SET kept_bytes = head.kept_bytes - removed.bytes FROM (
            SELECT graph, sum(octet_length(bytes) + 500) AS bytes FROM removed_rows GROUP BY graph
        ) AS removed WHERE head.graph = removed.graph;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_added AFTER INSERT ON note_version
    REFERENCING NEW TABLE AS added_rows FOR EACH STATEMENT EXECUTE FUNCTION count_versions();
CREATE TRIGGER count_removed AFTER DELETE ON note_version
    REFERENCING OLD TABLE AS removed_rows FOR EACH STATEMENT EXECUTE FUNCTION count_versions();

CREATE FUNCTION count_steps() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = quipu AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        UPDATE memory_head head SET bytes = head.bytes + added.bytes FROM (
            SELECT graph, sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) + 200) AS bytes
            FROM added_rows GROUP BY graph
        ) AS added WHERE head.graph = added.graph;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        UPDATE memory_head head SET bytes = head.bytes - removed.bytes FROM (
            SELECT graph, sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) + 200) AS bytes
            FROM removed_rows GROUP BY graph
        ) AS removed WHERE head.graph = removed.graph;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_added AFTER INSERT ON change_step
    REFERENCING NEW TABLE AS added_rows FOR EACH STATEMENT EXECUTE FUNCTION count_steps();
CREATE TRIGGER count_removed AFTER DELETE ON change_step
    REFERENCING OLD TABLE AS removed_rows FOR EACH STATEMENT EXECUTE FUNCTION count_steps();
CREATE TRIGGER count_changed AFTER UPDATE ON change_step
    REFERENCING OLD TABLE AS removed_rows NEW TABLE AS added_rows FOR EACH STATEMENT EXECUTE FUNCTION count_steps();

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

-- A second wall between graphs, behind the `graph = $1` of every statement: a transaction sees and writes rows of the graph that
-- it has set, and none if it has set none. The owner of the tables is not bound by it.
DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'memory_head', 'entity', 'alias', 'observation', 'relation', 'change', 'change_step', 'context', 'change_context',
        'entity_vector', 'observation_vector', 'text_claim', 'memory_request', 'note_tie',
        'note_head', 'note', 'note_version', 'note_change', 'note_request', 'note_write', 'note_write_file', 'shown_note'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_graph ON %I USING (graph = (SELECT nullif(current_setting(''quipu.graph'', true), '''')::bigint))',
            name
        );
    END LOOP;
END $$;

-- Vectors of passages, so that each text is embedded once for all servers. They can be computed again: deleting them costs time,
-- nothing else. The extension pgvector holds them in half precision; without it, each server computes its own. The tables are in
-- vectors.sql: pgvector may be installed later.
DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file THEN
    RAISE NOTICE 'pgvector is not available';
END $$;
