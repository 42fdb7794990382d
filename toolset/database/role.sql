-- The role and the database of the benchmark, by TechEmpower's convention: the password is public and opens nothing else.
CREATE ROLE benchmarkdbuser LOGIN PASSWORD 'benchmarkdbpass';
CREATE DATABASE hello_world OWNER benchmarkdbuser ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0;
