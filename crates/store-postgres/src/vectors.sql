-- The tables of vectors, created when pgvector is there: at first, once it is installed, or after a backup was restored without it. Run
-- by every `quipu db migrate`.
DO $$ BEGIN
    IF to_regtype('halfvec') IS NULL OR to_regclass('quipu.passage_vector') IS NOT NULL THEN
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
    CREATE TABLE IF NOT EXISTS passage_claim (
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
    DROP POLICY IF EXISTS one_graph ON passage_claim;
    CREATE POLICY one_graph ON passage_claim
        USING (graph = (SELECT nullif(current_setting('quipu.graph', true), '')::bigint));
END $$;
