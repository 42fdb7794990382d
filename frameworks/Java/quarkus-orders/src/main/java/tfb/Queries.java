package tfb;

/** HQL queries shared by the Hibernate ORM and Hibernate Reactive variants. */
final class Queries {

    static final String ITEMS = "from Item where id in :ids";

    /** Reads an order and its items with a single statement, so both are from the same snapshot. */
    static final String ORDER = "from Order o left join fetch o.items where o.id = :id";

    static final String ORDER_ITEM = """
            select new tfb.OrderItemView(i.itemId, i.quantity, i.price)
            from OrderItem i where i.order.id = :id and i.itemId = :itemId""";

    static final String NEWEST = """
            select new tfb.OrderSummary(o.id, o.customer.id, o.card, o.total) from Order o order by o.id desc""";

    /** The foreign key's ON DELETE CASCADE also deletes the order's items. */
    static final String DELETE = "delete from Order where id = :id";

    private Queries() {}
}
