"""The tables of the order service in PostgreSQL."""

from harness.runtime.database.table_sets import TableSet

ORDER_TABLE_SET = TableSet(
    seed_script="orders.sql",
    refill_script="refill_orders.sql",
    reload_script="reload_orders.sql",
    exists_query="""
        SELECT count(*) = 7 FROM information_schema.columns
        WHERE table_schema = 'public' AND (table_name, column_name) IN
            (('customer', 'name'), ('item', 'price'), ('orders', 'customer_id'), ('orders', 'card'),
             ('orders', 'total'), ('order_item', 'order_id'), ('order_item', 'item_id'))""",
    state_queries={
        # tfb raises all prices equally before a scenario, so hash each price relative to the lowest one.
        "customers, items and their prices": """
            SELECT md5((SELECT string_agg(concat_ws(' ', id, name), ',' ORDER BY id) FROM customer)
                       || (SELECT string_agg(concat_ws(' ', id, name, price - (SELECT min(price) FROM item)), ','
                                         ORDER BY id) FROM item))""",
    },
)
