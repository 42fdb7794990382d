-- Restores a database's rows while servers are connected. Unlike UPDATE, TRUNCATE leaves no dead rows.
BEGIN;
TRUNCATE world, "World";
INSERT INTO world (id, randomnumber)
SELECT id, 1 + (('x' || substr(md5('tfb world ' || id), 1, 8))::bit(32)::bigint % 10000)::integer
FROM generate_series(1, 10000) AS id;
INSERT INTO "World" SELECT * FROM world;
COMMIT;
VACUUM (ANALYZE, FREEZE) world, "World";
