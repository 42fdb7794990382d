-- Brings the rows of one database back to the seed while servers are connected to it, without what updates left behind.
BEGIN;
TRUNCATE world, "World";
INSERT INTO world (id, randomnumber)
SELECT id, 1 + (('x' || substr(md5('tfb world ' || id), 1, 8))::bit(32)::bigint % 10000)::integer
FROM generate_series(1, 10000) AS id;
INSERT INTO "World" SELECT * FROM world;
TRUNCATE orders, order_item RESTART IDENTITY;
COMMIT;
VACUUM (ANALYZE, FREEZE) world, "World", orders, order_item;
