package tfb;

/** The {@code calls} parameter: an integer clamped to 1..100, or 1 if it is missing or not an integer. */
public record CallCount(int value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static CallCount fromString(String text) {
        return new CallCount(IntegerParameter.clamp(text, 1, 100, 1));
    }
}
