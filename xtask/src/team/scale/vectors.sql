-- Exact search beside an HNSW index of pgvector, over `size` vectors. Prints a row of the table.
SET client_min_messages = warning;
SET maintenance_work_mem = '1GB';
SET max_parallel_maintenance_workers = 1;
SELECT setseed(0.5);
DROP TABLE IF EXISTS known, measured, question, exact, asked;

-- The vectors of real passages, and mixes of two of them until there are enough: as dense and as uneven as a larger vault.
CREATE TEMP TABLE known AS SELECT row_number() OVER (ORDER BY hash) AS id, vector::halfvec(384) FROM quipu.passage_vector;
CREATE UNIQUE INDEX ON known (id);
CREATE TABLE measured AS SELECT id, vector FROM known LIMIT :size;
INSERT INTO measured
    SELECT pair.id, l2_normalize(a.vector + a.vector + b.vector)::halfvec(384)
    FROM (SELECT id, 1 + floor(random() * (SELECT count(*) FROM known)) AS a, 1 + floor(random() * (SELECT count(*) FROM known)) AS b
          FROM generate_series((SELECT count(*) + 1 FROM known), :size) AS id) AS pair
    JOIN known a ON a.id = pair.a JOIN known b ON b.id = pair.b;
CREATE TEMP TABLE question AS
    SELECT pair.id, l2_normalize(a.vector + a.vector + b.vector)::halfvec(384) AS vector
    FROM (SELECT id, 1 + floor(random() * (SELECT count(*) FROM known)) AS a, 1 + floor(random() * (SELECT count(*) FROM known)) AS b
          FROM generate_series(1, 100) AS id) AS pair
    JOIN known a ON a.id = pair.a JOIN known b ON b.id = pair.b;
VACUUM ANALYZE measured;

CREATE TEMP TABLE asked (way text, question bigint, ms float8, found bigint[]);
CREATE FUNCTION pg_temp.ask(way text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one record;
    begun timestamptz;
    found bigint[];
BEGIN
    FOR one IN SELECT * FROM question LOOP
        begun := clock_timestamp();
        EXECUTE 'SELECT array(SELECT id FROM measured ORDER BY vector <=> $1 LIMIT 100)' INTO found USING one.vector;
        INSERT INTO asked VALUES (way, one.id, extract(epoch FROM clock_timestamp() - begun) * 1000, found);
    END LOOP;
END $$;
SELECT pg_temp.ask('exact') \g /dev/null
SELECT clock_timestamp() AS begun \gset
CREATE INDEX near ON measured USING hnsw (vector halfvec_cosine_ops);
SELECT extract(epoch FROM clock_timestamp() - :'begun')::numeric(10, 1) AS seconds \gset
SET enable_seqscan = off;
SET hnsw.ef_search = 100;
SELECT pg_temp.ask('100') \g /dev/null
SET hnsw.ef_search = 400;
SELECT pg_temp.ask('400') \g /dev/null

CREATE FUNCTION pg_temp.p50(wanted text) RETURNS numeric LANGUAGE sql AS $$
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms)::numeric(10, 1) FROM asked WHERE way = wanted $$;
CREATE FUNCTION pg_temp.recall(wanted text, best int) RETURNS numeric LANGUAGE sql AS $$
    SELECT (100 * avg((SELECT count(*) FROM unnest(asked.found[:best]) AS id WHERE id = ANY (exact.found[:best]))::float8 / best))::numeric(10, 1)
    FROM asked JOIN asked exact USING (question) WHERE asked.way = wanted AND exact.way = 'exact' $$;
SELECT concat_ws(' | ', :size, pg_temp.p50('exact'), pg_temp.p50('100'), pg_temp.recall('100', 10), pg_temp.recall('100', 100),
    pg_temp.p50('400'), pg_temp.recall('400', 10), pg_temp.recall('400', 100), :seconds, pg_relation_size('near') / :size);
