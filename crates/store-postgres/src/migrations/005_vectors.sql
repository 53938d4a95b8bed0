-- Vectors of passages, so that each text is embedded once for all servers. They can be computed again: deleting them costs time,
-- nothing else. The extension pgvector holds them in half precision; without it, each server computes its own. The tables are in
-- vectors.sql: pgvector may be installed later.
DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file THEN
    RAISE NOTICE 'pgvector is not available';
END $$;
