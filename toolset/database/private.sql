-- Hides activity and statistics from the benchmark's role, because a server could use them to detect verification.
-- tfb does not run this script on an external PostgreSQL server, because only the functions' owner can revoke access.
DO $$ DECLARE hidden regprocedure; BEGIN
  FOR hidden IN
    SELECT oid FROM pg_proc
    WHERE proname ~ '^pg_(stat_get|control)_|^pg_current_(wal_|xact_|snapshot$)|^txid_|^pg_(safe_snapshot_)?blocking_pids$'
       OR proname ~ '^pg_(database|indexes|relation|table|total_relation)_size$'
       OR proname IN ('pg_lock_status', 'pg_prepared_xact', 'pg_xact_commit_timestamp', 'pg_last_committed_xact',
                      'pg_xact_status', 'pg_logical_emit_message')
       OR prosrc IN ('xid_age', 'mxid_age')
  LOOP EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', hidden); END LOOP; END $$;
