-- Deletes the orders and their items in an external database, where the role must not reset the identity column.
DELETE FROM orders;
