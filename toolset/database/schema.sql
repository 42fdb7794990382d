-- TechEmpower's tables. Each exists twice, because unquoted names fold to lower case, and implementations for other
-- databases quote them.
CREATE TABLE world (
  id integer NOT NULL PRIMARY KEY,
  randomnumber integer NOT NULL DEFAULT 0
);
CREATE TABLE fortune (
  id integer NOT NULL PRIMARY KEY,
  message varchar(2048) NOT NULL
);
CREATE TABLE "World" (
  id integer NOT NULL PRIMARY KEY,
  randomNumber integer NOT NULL DEFAULT 0
);
CREATE TABLE "Fortune" (
  id integer NOT NULL PRIMARY KEY,
  message varchar(2048) NOT NULL
);
REVOKE ALL ON DATABASE hello_world FROM PUBLIC;
GRANT CONNECT ON DATABASE hello_world TO benchmarkdbuser;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT SELECT, UPDATE ON world, "World" TO benchmarkdbuser;
GRANT SELECT ON fortune, "Fortune" TO benchmarkdbuser;
