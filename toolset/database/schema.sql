-- TechEmpower's tables. Each table exists twice, because some implementations quote its name and others do not.
-- PostgreSQL converts unquoted names to lower case.
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
