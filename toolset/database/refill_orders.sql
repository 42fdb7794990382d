-- Deletes the orders and their items while servers are connected.
TRUNCATE orders, order_item RESTART IDENTITY;
VACUUM (ANALYZE, FREEZE) orders, order_item;
