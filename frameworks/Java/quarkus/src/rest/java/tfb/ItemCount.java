package tfb;

/** The number of items: an integer clamped to 0..50, or 0 if it is not an integer. */
public record ItemCount(int value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static ItemCount fromString(String text) {
        return new ItemCount(IntegerParameter.clamp(text, 0, 50, 0));
    }
}
