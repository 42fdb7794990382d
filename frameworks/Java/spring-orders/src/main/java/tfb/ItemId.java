package tfb;

/** An item id in a path. It consists of digits only and fits into 32 bits. */
record ItemId(int value) {

    public static ItemId valueOf(String text) {
        if (!OrderId.DIGITS.matcher(text).matches()) {
            throw new NumberFormatException("Not a valid id: " + text);
        }
        return new ItemId(Integer.parseInt(text));
    }
}
