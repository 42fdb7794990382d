package tfb;

/** The path segment {id}. A text that is not a valid id becomes 0, so that the 404 follows after validation of the body. */
public record OrderId(long value) {

    /** JAX-RS creates the object with this method. */
    public static OrderId fromString(String text) {
        return new OrderId(PathNumber.of(text, Long.MAX_VALUE));
    }
}
