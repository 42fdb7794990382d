package tfb;

/** The path segment {itemId}. An invalid id becomes 0, which no item has. */
public record ItemId(int value) {

    /** JAX-RS calls this method to convert the parameter. */
    public static ItemId fromString(String text) {
        return new ItemId((int) PathNumber.of(text, Integer.MAX_VALUE));
    }

    /** Returns this id, or fails with 404 if it is invalid. */
    ItemId possible() {
        if (value == 0) {
            throw Problems.notFound("The path contains no valid item id");
        }
        return this;
    }
}
