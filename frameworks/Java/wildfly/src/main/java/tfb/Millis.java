package tfb;

/** The {@code ms} parameter: an integer clamped to 0..1000, or 0 if it is missing or not an integer. */
public record Millis(int value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static Millis fromString(String text) {
        return new Millis(IntegerParameter.clamp(text, 0, 1000, 0));
    }
}
