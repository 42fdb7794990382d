-- The role and the database of the benchmark, by TechEmpower's convention: the password is public and opens nothing else.
CREATE ROLE benchmarkdbuser LOGIN PASSWORD 'benchmarkdbpass';
-- It owns nothing and creates nothing: what a server leaves behind in the database, the next one would meet.
CREATE DATABASE hello_world ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0;
