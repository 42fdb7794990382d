-- For folders that are written for TechEmpower's toolset, after restore.sql: there the benchmark's role owns what is in the
-- database, and some make temporary tables, functions or the tables themselves anew when they start.
ALTER DATABASE hello_world OWNER TO benchmarkdbuser;
ALTER SCHEMA public OWNER TO benchmarkdbuser;
ALTER TABLE world OWNER TO benchmarkdbuser;
ALTER TABLE "World" OWNER TO benchmarkdbuser;
ALTER TABLE fortune OWNER TO benchmarkdbuser;
ALTER TABLE "Fortune" OWNER TO benchmarkdbuser;
