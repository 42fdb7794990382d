package tfb;

/** The key of the table order_item. Its names match {@link OrderItem}. */
public record OrderItemId(Long order, int itemId) {}
