"""Reads the database state that a server could change for later servers, before and after the server runs.

Roles, databases, locks and prepared transactions of other servers are ignored.
"""

from collections.abc import Mapping

import psycopg

# A query for each part of the state. %(user)s is the server's role. Long results are replaced by a digest.
QUERIES: Mapping[str, str] = {
    "settings of roles or databases (ALTER ROLE … SET)": """
        SELECT coalesce(string_agg(coalesce(r.rolname, '*') || ': ' || array_to_string(s.setconfig, ', '), '; '
                                   ORDER BY r.rolname, s.setdatabase), 'none')
        FROM pg_db_role_setting AS s LEFT JOIN pg_roles AS r ON r.oid = s.setrole
        WHERE r.rolname = %(user)s
           OR s.setrole = 0 AND s.setdatabase IN (0, (SELECT oid FROM pg_database
                                                  WHERE datname = current_database()))""",
    "a role's password or rights": """
        SELECT md5(string_agg(concat_ws(' ', rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit)
                              || coalesce(rolpassword, ''), ',' ORDER BY rolname))
        FROM pg_authid WHERE rolname = %(user)s""",
    # Private databases of other servers are excluded. Servers cannot create databases.
    "databases": r"SELECT string_agg(datname, ', ' ORDER BY datname) FROM pg_database "
    r"WHERE datname NOT LIKE 'hello\_world\_of\_%%'",
    "tables, indexes, views, sequences and their columns": """
        SELECT md5(coalesce(string_agg(
                   n.nspname || '.' || c.relname || c.relkind::text || coalesce(c.reloptions::text, '')
                   || coalesce(c.relacl::text, '') || c.relrowsecurity::text || c.relpersistence::text
                   || (SELECT coalesce(string_agg(concat_ws(' ', a.attname, a.atttypid, a.attnotnull), ','
                                                  ORDER BY a.attnum), '')
                       FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0),
                   ';' ORDER BY n.nspname, c.relname), ''))
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'""",
    "functions, triggers, rules, schemas and extensions": """
        SELECT md5(concat_ws('|',
            (SELECT string_agg(p.proname || p.prosrc, ',' ORDER BY p.oid) FROM pg_proc AS p
             JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname !~ '^(pg_|information_schema)'),
            (SELECT string_agg(tgname || tgrelid::regclass::text, ',' ORDER BY oid) FROM pg_trigger),
            (SELECT string_agg(rulename, ',' ORDER BY oid) FROM pg_rewrite WHERE ev_class >= 16384),
            (SELECT string_agg(nspname, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_'),
            (SELECT string_agg(extname, ',' ORDER BY extname) FROM pg_extension)))""",
    "prepared transactions": "SELECT coalesce(string_agg(gid, ', '), 'none') FROM pg_prepared_xacts "
    "WHERE database = current_database()",
    "advisory locks": "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    "large objects": "SELECT count(*)::text FROM pg_largeobject_metadata",
    "rows of the fortune tables": """
        SELECT md5((SELECT string_agg(id || message, ',' ORDER BY id) FROM fortune)
                   || (SELECT string_agg(id || message, ',' ORDER BY id) FROM "Fortune"))""",
    # Before a scenario, tfb raises all prices by the same amount.
    "customers, items and their prices": """
        SELECT md5((SELECT string_agg(concat_ws(' ', id, name), ',' ORDER BY id) FROM customer)
                   || (SELECT string_agg(concat_ws(' ', id, name, price - (SELECT min(price) FROM item)), ','
                                     ORDER BY id) FROM item))""",
}


def read_server_state(admin: psycopg.Connection, user: str) -> dict[str, str]:
    """Return the current state by the names in ``QUERIES``. ``user`` is the server's role."""
    state = {}
    for name, query in QUERIES.items():
        row = admin.execute(query.encode(), {"user": user}).fetchone()
        state[name] = str(row[0]) if row else ""
    return state
