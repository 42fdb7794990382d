-- Makes the benchmark's role the owner of the restored database. Implementations in TechEmpower's tree
-- expect this: some of them create temporary tables, functions or the tables themselves.
ALTER DATABASE hello_world OWNER TO benchmarkdbuser;
ALTER SCHEMA public OWNER TO benchmarkdbuser;
ALTER TABLE world OWNER TO benchmarkdbuser;
ALTER TABLE "World" OWNER TO benchmarkdbuser;
ALTER TABLE fortune OWNER TO benchmarkdbuser;
ALTER TABLE "Fortune" OWNER TO benchmarkdbuser;
