-- Restores the rows of a database while servers are connected. UPDATE would leave dead rows.
BEGIN;
TRUNCATE world, "World";
INSERT INTO world (id, randomnumber)
SELECT id, 1 + (('x' || substr(md5('tfb world ' || id), 1, 8))::bit(32)::bigint % 10000)::integer
FROM generate_series(1, 10000) AS id;
INSERT INTO "World" SELECT * FROM world;
COMMIT;
VACUUM (ANALYZE, FREEZE) world, "World";
