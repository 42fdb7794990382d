package tfb;

/** The key of the {@code order_item} table. The component names match {@link OrderItem}. */
public record OrderItemId(Long order, int itemId) {}
