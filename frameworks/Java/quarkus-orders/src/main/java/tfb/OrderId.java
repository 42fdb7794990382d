package tfb;

/** The segment {id} of a path. Text that can be no order's id becomes 0, which no order has: 404, after the body is judged. */
public record OrderId(long value) {

    /** JAX-RS makes it from the segment by this method. */
    public static OrderId fromString(String text) {
        return new OrderId(PathNumber.of(text, Long.MAX_VALUE));
    }
}
