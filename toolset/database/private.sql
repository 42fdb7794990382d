-- The role sees its own work and nobody else's: who is connected, what was scanned or written and what waits says when the
-- harness looks, and a server that could read it would know when it is watched. As the owner of the functions: elsewhere
-- (a PostgreSQL that somebody else runs) they stay readable.
DO $$ DECLARE hidden regprocedure; BEGIN
  FOR hidden IN
    SELECT oid FROM pg_proc
    WHERE proname ~ '^pg_stat_get_|^pg_current_wal_|^pg_safe_snapshot_blocking_pids$|^pg_blocking_pids$'
       OR proname IN ('pg_lock_status', 'pg_prepared_xact', 'pg_xact_commit_timestamp', 'pg_last_committed_xact')
  LOOP EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', hidden); END LOOP; END $$;
