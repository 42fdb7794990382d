-- Gives the benchmark's role the ownership of the database, after restore.sql. TechEmpower folders expect it: some create
-- temporary tables, functions or the tables themselves.
ALTER DATABASE hello_world OWNER TO benchmarkdbuser;
ALTER SCHEMA public OWNER TO benchmarkdbuser;
ALTER TABLE world OWNER TO benchmarkdbuser;
ALTER TABLE "World" OWNER TO benchmarkdbuser;
ALTER TABLE fortune OWNER TO benchmarkdbuser;
ALTER TABLE "Fortune" OWNER TO benchmarkdbuser;
