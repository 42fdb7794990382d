package tfb;

/** The id of an item in a path: digits only, 32 bits. */
record ItemId(int value) {

    public static ItemId valueOf(String text) {
        if (!text.matches(OrderId.DIGITS)) {
            throw new NumberFormatException("No id: " + text);
        }
        return new ItemId(Integer.parseInt(text));
    }
}
