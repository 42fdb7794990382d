package tfb;

/** The parameter {@code ms}: an integer clamped to 0..1000; absent or not an integer means 0. */
public record Millis(int value) {

    /** JAX-RS makes it from the parameter by this method. */
    public static Millis fromString(String text) {
        return new Millis(Whole.clamped(text, 0, 1000, 0));
    }
}
