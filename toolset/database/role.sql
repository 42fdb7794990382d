-- The benchmark's role and database. By TechEmpower's convention, the password is public.
CREATE ROLE benchmarkdbuser LOGIN PASSWORD 'benchmarkdbpass';
-- The role does not own the database, so servers cannot create objects that affect the next server.
CREATE DATABASE hello_world ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0;
