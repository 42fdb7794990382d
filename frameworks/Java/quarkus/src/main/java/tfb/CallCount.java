package tfb;

/** The parameter {@code calls}: an integer clamped to 1..100; 1 if it is missing or not an integer. */
public record CallCount(int value) {

    /** JAX-RS creates the object with this method. */
    public static CallCount fromString(String text) {
        return new CallCount(IntegerParameter.clamp(text, 1, 100, 1));
    }
}
