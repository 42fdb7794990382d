package tfb;

/** The parameter {@code queries}: an integer clamped to 1..500; absent, empty or not an integer means 1. */
public record QueryCount(int value) {

    /** JAX-RS makes it from the parameter by this method. */
    public static QueryCount fromString(String text) {
        return new QueryCount(Whole.clamped(text, 1, 500, 1));
    }
}
