-- The counters that verification reads; loaded with the server, off until verification turns them on.
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
