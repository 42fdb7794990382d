-- Brings the database back to the seeded state; connections that are still open are ended.
DROP DATABASE IF EXISTS hello_world WITH (FORCE);
CREATE DATABASE hello_world OWNER benchmarkdbuser TEMPLATE hello_world_seed;
