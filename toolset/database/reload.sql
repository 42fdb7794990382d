-- Restores the rows of an external database, where the benchmark's role may only update rows.
UPDATE world SET randomnumber = seeded.number
FROM (SELECT id, 1 + (('x' || substr(md5('tfb world ' || id), 1, 8))::bit(32)::bigint % 10000)::integer AS number
      FROM generate_series(1, 10000) AS id) AS seeded
WHERE world.id = seeded.id AND world.randomnumber <> seeded.number;
UPDATE "World" SET randomnumber = world.randomnumber FROM world
WHERE "World".id = world.id AND "World".randomnumber <> world.randomnumber;
