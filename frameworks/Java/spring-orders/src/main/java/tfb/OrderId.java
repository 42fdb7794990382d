package tfb;

import java.util.regex.Pattern;

/** An order id in a path. It consists of digits only, whereas Spring's conversion would also accept 0x1, #1 and +1. */
record OrderId(long value) {

    static final Pattern DIGITS = Pattern.compile("[1-9][0-9]*");

    public static OrderId valueOf(String text) {
        if (!DIGITS.matcher(text).matches()) {
            throw new NumberFormatException("Not a valid id: " + text);
        }
        return new OrderId(Long.parseLong(text));
    }
}
