DO $$
DECLARE
    name TEXT;
    has_graph BOOLEAN;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_server') THEN
        RETURN;
    END IF;
    GRANT USAGE ON SCHEMA quipu TO quipu_server;
    FOR name, has_graph IN
        SELECT relname, relrowsecurity FROM pg_class WHERE relnamespace = 'quipu'::regnamespace AND relkind = 'r'
    LOOP
        EXECUTE format('REVOKE ALL ON quipu.%I FROM quipu_server', name);
        EXECUTE format(
            'GRANT %s ON quipu.%I TO quipu_server',
            CASE WHEN has_graph THEN 'SELECT, INSERT, UPDATE, DELETE' ELSE 'SELECT' END,
            name
        );
    END LOOP;
END $$;
