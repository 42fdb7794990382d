package tfb;

/** The key of the table order_item; the names are those of {@link OrderItem}'s own. */
public record OrderItemId(Long order, int itemId) {}
