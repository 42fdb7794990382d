package tfb;

/** An item's id in a path, which consists of digits only and fits into 32 bits. */
record ItemId(int value) {

    public static ItemId valueOf(String text) {
        if (!text.matches(OrderId.DIGITS)) {
            throw new NumberFormatException("No id: " + text);
        }
        return new ItemId(Integer.parseInt(text));
    }
}
