package tfb;

/**
 * The {@code queries} or {@code count} parameter: an integer clamped to 1..500, or 1 if it is missing or not an integer.
 */
public record QueryCount(int value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static QueryCount fromString(String text) {
        return new QueryCount(IntegerParameter.clamp(text, 1, 500, 1));
    }
}
