package tfb;

/** The parameter {@code ms}: an integer clamped to 0..1000; 0 if it is missing or not an integer. */
public record Millis(int value) {

    /** JAX-RS creates the object with this method. */
    public static Millis fromString(String text) {
        return new Millis(IntegerParameter.clamp(text, 0, 1000, 0));
    }
}
