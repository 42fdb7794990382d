package tfb;

/** The path segment {id}. An invalid id becomes 0, so that the body is validated before the response is a 404. */
public record OrderId(long value) {

    /** JAX-RS creates the object with this method. */
    public static OrderId fromString(String text) {
        return new OrderId(PathNumber.of(text, Long.MAX_VALUE));
    }
}
