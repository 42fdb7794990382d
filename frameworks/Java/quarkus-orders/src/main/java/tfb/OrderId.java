package tfb;

/** The path segment {id}. An invalid id becomes 0, so the body is still validated before the request is rejected with 404. */
public record OrderId(long value) {

    /** JAX-RS creates the object with this method. */
    public static OrderId fromString(String text) {
        return new OrderId(PathNumber.of(text, Long.MAX_VALUE));
    }
}
