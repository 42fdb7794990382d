-- Deletes the orders and their items in an external database, with the rights of the role. The identity column is not reset.
DELETE FROM orders;
