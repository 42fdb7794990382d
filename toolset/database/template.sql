-- Keeps the seeded state as a template, from which restore.sql makes a fresh copy in a fraction of a second.
CREATE DATABASE hello_world_seed TEMPLATE hello_world;
REVOKE ALL ON DATABASE hello_world_seed, postgres, template1 FROM PUBLIC;
