package tfb;

/** The {@code m} parameter: an integer clamped to 1..1,000,000, or 1 if it is missing or not an integer. */
public record Multiplier(int value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static Multiplier fromString(String text) {
        return new Multiplier(IntegerParameter.clamp(text, 1, 1_000_000, 1));
    }
}
