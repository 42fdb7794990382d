-- Replaces the database with a copy of the seeded template, and resets the role. Terminates open connections.
DROP DATABASE IF EXISTS hello_world WITH (FORCE);
ALTER ROLE benchmarkdbuser RESET ALL;
ALTER ROLE benchmarkdbuser PASSWORD 'benchmarkdbpass';
CREATE DATABASE hello_world TEMPLATE hello_world_seed;
REVOKE ALL ON DATABASE hello_world FROM PUBLIC;
GRANT CONNECT ON DATABASE hello_world TO benchmarkdbuser;
