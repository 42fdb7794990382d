package tfb;

/** The segment {itemId} of a path. Text that can be no item's id becomes 0, which no item has. */
public record ItemId(int value) {

    /** JAX-RS makes it from the segment by this method. */
    public static ItemId fromString(String text) {
        return new ItemId((int) PathNumber.of(text, Integer.MAX_VALUE));
    }

    /** Itself; 404 when it can be no item's id. */
    ItemId possible() {
        if (value == 0) {
            throw Problems.notFound("The path names no item");
        }
        return this;
    }
}
