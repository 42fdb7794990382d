-- Saves the seeded database as a template, which restore.sql copies in a fraction of a second.
CREATE DATABASE hello_world_seed TEMPLATE hello_world;
REVOKE ALL ON DATABASE hello_world_seed, postgres, template1 FROM PUBLIC;
