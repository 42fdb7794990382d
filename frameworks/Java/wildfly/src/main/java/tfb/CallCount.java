package tfb;

/** The parameter {@code calls}: an integer clamped to 1..100; absent or not an integer means 1. */
public record CallCount(int value) {

    /** JAX-RS makes it from the parameter by this method. */
    public static CallCount fromString(String text) {
        return new CallCount(Whole.clamped(text, 1, 100, 1));
    }
}
