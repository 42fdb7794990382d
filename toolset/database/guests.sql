-- Makes the benchmark's role the owner of the restored database. Some implementations in TechEmpower's repository
-- need this to create functions, temporary tables or even the benchmark's tables.
ALTER DATABASE hello_world OWNER TO benchmarkdbuser;
ALTER SCHEMA public OWNER TO benchmarkdbuser;
ALTER TABLE world OWNER TO benchmarkdbuser;
ALTER TABLE "World" OWNER TO benchmarkdbuser;
ALTER TABLE fortune OWNER TO benchmarkdbuser;
ALTER TABLE "Fortune" OWNER TO benchmarkdbuser;
