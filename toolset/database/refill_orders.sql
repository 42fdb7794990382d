-- Deletes all rows of the tables orders and order_item while servers are connected.
TRUNCATE orders, order_item RESTART IDENTITY;
VACUUM (ANALYZE, FREEZE) orders, order_item;
