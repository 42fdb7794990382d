package tfb;

/** The parameter {@code queries}: an integer clamped to 1..500; 1 if it is missing or not an integer. */
public record QueryCount(int value) {

    /** JAX-RS creates the object with this method. */
    public static QueryCount fromString(String text) {
        return new QueryCount(IntegerParameter.clamp(text, 1, 500, 1));
    }
}
