-- Deletes all rows of the table orders and, by cascade, of order_item in an external database. The benchmark's role
-- cannot reset the identity column there.
DELETE FROM orders;
