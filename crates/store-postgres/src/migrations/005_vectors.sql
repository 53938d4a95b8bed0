-- Vectors of passages, so that each text is embedded once for all servers. They can be computed again: deleting them costs time,
-- nothing else. The extension pgvector holds them in half precision; without it, each server computes its own.
DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file THEN
    RAISE NOTICE 'pgvector is not available';
END $$;
DO $$ BEGIN
    IF to_regtype('halfvec') IS NULL THEN
        RETURN;
    END IF;
    CREATE TABLE passage_vector (
        graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
        space TEXT COLLATE "C" NOT NULL,
        hash BYTEA NOT NULL,
        vector halfvec NOT NULL,
        PRIMARY KEY (graph, space, hash)
    );
    -- Who computes the vector of a passage, and until when: a claim that is not renewed may be taken over.
    CREATE TABLE passage_claim (
        graph BIGINT NOT NULL REFERENCES graph (id) ON DELETE CASCADE,
        space TEXT COLLATE "C" NOT NULL,
        hash BYTEA NOT NULL,
        holder TEXT COLLATE "C" NOT NULL,
        until TIMESTAMPTZ NOT NULL,
        PRIMARY KEY (graph, space, hash)
    );
    ALTER TABLE passage_vector ENABLE ROW LEVEL SECURITY;
    CREATE POLICY one_graph ON passage_vector
        USING (graph = (SELECT nullif(current_setting('quipu.graph', true), '')::bigint));
    ALTER TABLE passage_claim ENABLE ROW LEVEL SECURITY;
    CREATE POLICY one_graph ON passage_claim
        USING (graph = (SELECT nullif(current_setting('quipu.graph', true), '')::bigint));
END $$;
