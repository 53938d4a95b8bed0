-- Roles for Quipu with no more rights than they need. Run this once as an administrator of the database, before `quipu db init`
-- or after it:
--
--     quipu db roles | psql -v ON_ERROR_STOP=1 -d DATABASE
--
-- Then give both roles a way to log in, for example with \password quipu_server.
--
-- quipu_admin   owns the tables: the user of `quipu db`, `graph`, `token`, `push`, `pull`, `mirror`, `import` and `export`.
-- quipu_server  the user of servers: reads and writes notes and memory of the graph that each of its transactions has set, reads
--               graphs and tokens, creates nothing.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_admin') THEN
        CREATE ROLE quipu_admin LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_server') THEN
        CREATE ROLE quipu_server LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
-- Another run, for another database of the same server, may have created them meanwhile.
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END $$;
-- Where it is available: with it, each text is embedded once for all servers.
DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
EXCEPTION WHEN feature_not_supported OR undefined_file THEN
    RAISE NOTICE 'pgvector is not available';
END $$;
CREATE SCHEMA IF NOT EXISTS quipu;
ALTER SCHEMA quipu OWNER TO quipu_admin;
DO $$
DECLARE name TEXT;
BEGIN
    -- Tables and functions that another user made before.
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'quipu' LOOP
        EXECUTE format('ALTER TABLE quipu.%I OWNER TO quipu_admin', name);
    END LOOP;
    FOR name IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = to_regnamespace('quipu') LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO quipu_admin', name);
    END LOOP;
END $$;
-- Rights on the tables. `quipu db migrate` runs the same for new ones.
