package tfb;

/**
 * The path segment {id}. An invalid id becomes 0, which no order has, so that the 400 for an invalid body takes
 * precedence over the 404.
 */
public record OrderId(long value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static OrderId fromString(String text) {
        return new OrderId(PathNumber.of(text, Long.MAX_VALUE));
    }
}
