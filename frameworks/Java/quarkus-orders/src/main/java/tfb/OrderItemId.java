package tfb;

/**
 * The primary key of the {@code order_item} table. The fields must have the same names as those of {@link OrderItem}.
 */
public record OrderItemId(Long order, int itemId) {}
