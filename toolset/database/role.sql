-- Role and database of the benchmark. By TechEmpower's convention, the password is public.
CREATE ROLE benchmarkdbuser LOGIN PASSWORD 'benchmarkdbpass';
-- The role does not own the database, because objects that a server creates could affect the next server.
CREATE DATABASE hello_world ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0;
