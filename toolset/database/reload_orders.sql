-- Deletes the orders and their items in an external database, where the benchmark's role cannot reset the identity
-- column.
DELETE FROM orders;
