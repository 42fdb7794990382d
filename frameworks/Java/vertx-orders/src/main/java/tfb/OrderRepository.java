package tfb;

import io.vertx.core.Future;
import io.vertx.ext.web.handler.HttpException;
import io.vertx.sqlclient.Pool;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import io.vertx.sqlclient.SqlClient;
import io.vertx.sqlclient.Tuple;
import java.math.BigDecimal;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Repository for orders in PostgreSQL. It locks an order's row before changing the items, so the total stays
 * consistent.
 */
final class OrderRepository {

    private static final String LOADED_CARD = "4111111111111111";

    private static final String SELECT_CUSTOMER = "SELECT id FROM customer WHERE id = $1";
    private static final String SELECT_PRICES = "SELECT id, price FROM item WHERE id = ANY ($1)";
    private static final String INSERT_ORDER =
            "INSERT INTO orders (customer_id, card, total) VALUES ($1, $2, $3) RETURNING id";
    private static final String INSERT_ITEM = """
            INSERT INTO order_item (order_id, item_id, quantity, price) VALUES ($1, $2, $3, $4)
            ON CONFLICT DO NOTHING""";
    private static final String SELECT_NEWEST =
            "SELECT id, customer_id, card, total FROM orders ORDER BY id DESC LIMIT $1";
    /** Reads the total and the items with a single statement, so they are consistent. */
    private static final String SELECT_ORDER = """
            SELECT id, customer_id, card, total, item_id, quantity, price
            FROM orders LEFT JOIN order_item ON order_id = id WHERE id = $1 ORDER BY item_id""";
    private static final String SELECT_ITEM =
            "SELECT item_id, quantity, price FROM order_item WHERE order_id = $1 AND item_id = $2";
    private static final String LOCK_ORDER = "SELECT id FROM orders WHERE id = $1 FOR UPDATE";
    private static final String UPDATE_CARD = "UPDATE orders SET card = $2 WHERE id = $1";
    private static final String UPDATE_TOTAL = """
            UPDATE orders
            SET total = (SELECT coalesce(sum(quantity * price), 0) FROM order_item WHERE order_id = $1) WHERE id = $1""";
    private static final String DELETE_ITEM = "DELETE FROM order_item WHERE order_id = $1 AND item_id = $2";
    /** The foreign key's ON DELETE CASCADE also deletes the order's items. */
    private static final String DELETE_ORDER = "DELETE FROM orders WHERE id = $1";
    /** Order k (from 0) belongs to customer 1 + (k mod 1000), and contains the item with the customer's id. */
    private static final String LOAD = """
            WITH loaded AS (
              INSERT INTO orders (customer_id, card, total)
              SELECT item.id, $2, item.price
              FROM generate_series(0, $1 - 1) k JOIN item ON item.id = 1 + k % 1000 ORDER BY k
              RETURNING id, customer_id, total)
            INSERT INTO order_item (order_id, item_id, quantity, price)
            SELECT id, customer_id, 1, total FROM loaded""";

    private final Pool pool;

    OrderRepository(Pool pool) {
        this.pool = pool;
    }

    Future<Order> create(NewOrder wanted) {
        return pool.withTransaction(connection -> {
            Future<Void> customer = execute(connection, SELECT_CUSTOMER, Tuple.of(wanted.customerId()))
                    .compose(found -> some(found, 400, "There is no customer " + wanted.customerId()));
            Future<List<Order.Item>> items = withPrices(connection, wanted.items());
            return Future.all(customer, items).compose(both -> insert(connection, wanted, items.result()));
        });
    }

    /** Returns orders without items, newest first. */
    Future<List<Order.Summary>> newest(int limit) {
        return execute(pool, SELECT_NEWEST, Tuple.of(limit)).map(rows -> stream(rows)
                .map(row -> new Order.Summary(
                        row.getLong(0), row.getInteger(1), row.getString(2), row.getBigDecimal(3)))
                .toList());
    }

    Future<Order> read(long id) {
        return read(pool, id);
    }

    Future<Order> changeCard(long id, String card) {
        return pool.withTransaction(connection -> execute(connection, UPDATE_CARD, Tuple.of(id, card))
                .compose(updated -> read(connection, id)));
    }

    Future<Void> delete(long id) {
        return execute(pool, DELETE_ORDER, Tuple.of(id)).compose(deleted -> some(deleted, 404, noOrder(id)));
    }

    Future<Order.Item> item(long id, int itemId) {
        return execute(pool, SELECT_ITEM, Tuple.of(id, itemId)).compose(found ->
                some(found, 404, noItem(id, itemId)).map(any -> item(found.iterator().next())));
    }

    Future<Order> addItem(long id, int itemId, int quantity) {
        return pool.withTransaction(connection -> lock(connection, id)
                .compose(locked -> withPrices(connection, List.of(new NewOrder.Item(itemId, quantity))))
                .compose(items -> execute(connection, INSERT_ITEM, columns(id, items.getFirst())))
                .compose(inserted -> some(inserted, 409, "Order " + id + " already contains item " + itemId))
                .compose(inserted -> execute(connection, UPDATE_TOTAL, Tuple.of(id)))
                .compose(updated -> read(connection, id)));
    }

    Future<Void> deleteItem(long id, int itemId) {
        return pool.withTransaction(connection -> lock(connection, id)
                .compose(locked -> execute(connection, DELETE_ITEM, Tuple.of(id, itemId)))
                .compose(deleted -> some(deleted, 404, noItem(id, itemId)))
                .compose(deleted -> execute(connection, UPDATE_TOTAL, Tuple.of(id)))
                .mapEmpty());
    }

    /** Creates {@code count} orders with one item each, in a single statement. Returns the number of created orders. */
    Future<Integer> load(int count) {
        return execute(pool, LOAD, Tuple.of(count, LOADED_CARD)).map(RowSet::rowCount);
    }

    private static Future<Order> insert(SqlClient client, NewOrder wanted, List<Order.Item> items) {
        BigDecimal total = items.stream().map(Order.Item::cost).reduce(BigDecimal.ZERO, BigDecimal::add);
        return execute(client, INSERT_ORDER, Tuple.of(wanted.customerId(), wanted.card(), total)).compose(inserted -> {
            long id = inserted.iterator().next().getLong(0);
            return client.preparedQuery(INSERT_ITEM)
                    .executeBatch(items.stream().map(item -> columns(id, item)).toList())
                    .map(all -> new Order(id, wanted.customerId(), wanted.card(), total, items));
        });
    }

    /** Returns the items with their current prices, sorted by id. */
    private static Future<List<Order.Item>> withPrices(SqlClient client, List<NewOrder.Item> items) {
        Integer[] ids = items.stream().map(NewOrder.Item::itemId).toArray(Integer[]::new);
        return execute(client, SELECT_PRICES, Tuple.of(ids)).map(rows -> {
            Map<Integer, BigDecimal> prices =
                    stream(rows).collect(Collectors.toMap(row -> row.getInteger(0), row -> row.getBigDecimal(1)));
            return items.stream().sorted(Comparator.comparing(NewOrder.Item::itemId)).map(item -> {
                BigDecimal price = prices.get(item.itemId());
                if (price == null) {
                    throw new HttpException(400, "There is no item " + item.itemId());
                }
                return new Order.Item(item.itemId(), item.quantity(), price);
            }).toList();
        });
    }

    /** Locks the order's row until the transaction ends. */
    private static Future<Void> lock(SqlClient client, long id) {
        return execute(client, LOCK_ORDER, Tuple.of(id)).compose(locked -> some(locked, 404, noOrder(id)));
    }

    private static Future<Order> read(SqlClient client, long id) {
        return execute(client, SELECT_ORDER, Tuple.of(id)).compose(rows ->
                some(rows, 404, noOrder(id)).map(any -> order(rows)));
    }

    private static Order order(RowSet<Row> rows) {
        Row first = rows.iterator().next();
        List<Order.Item> items = stream(rows)
                .filter(row -> row.getInteger("item_id") != null)
                .map(OrderRepository::item)
                .toList();
        return new Order(first.getLong("id"), first.getInteger("customer_id"), first.getString("card"),
                first.getBigDecimal("total"), items);
    }

    private static Order.Item item(Row row) {
        return new Order.Item(row.getInteger("item_id"), row.getInteger("quantity"), row.getBigDecimal("price"));
    }

    private static Tuple columns(long id, Order.Item item) {
        return Tuple.of(id, item.itemId(), item.quantity(), item.price());
    }

    /** Fails with status {@code otherwise} if no row was read or written. */
    private static Future<Void> some(RowSet<Row> rows, int otherwise, String detail) {
        return rows.rowCount() > 0
                ? Future.succeededFuture()
                : Future.failedFuture(new HttpException(otherwise, detail));
    }

    private static Future<RowSet<Row>> execute(SqlClient client, String sql, Tuple parameters) {
        return client.preparedQuery(sql).execute(parameters);
    }

    private static Stream<Row> stream(RowSet<Row> rows) {
        return StreamSupport.stream(rows.spliterator(), false);
    }

    private static String noOrder(long id) {
        return "There is no order " + id;
    }

    private static String noItem(long id, int itemId) {
        return "Order " + id + " has no item " + itemId;
    }
}
