package tfb;

import java.util.regex.Pattern;

/** Parses ids in paths. */
final class PathNumber {

    private static final Pattern DIGITS = Pattern.compile("[0-9]{1,19}");

    private PathNumber() {}

    /** Returns {@code text} as an integer, or 0 if it is not an integer from 1 to {@code most}. */
    static long of(String text, long most) {
        if (!DIGITS.matcher(text).matches()) {
            return 0;
        }
        try {
            long number = Long.parseLong(text);
            return number <= most ? number : 0;
        } catch (NumberFormatException beyondLong) {
            return 0;
        }
    }
}
