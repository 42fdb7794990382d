package tfb;

import java.util.regex.Pattern;

/** Parses integer query parameters. */
final class IntegerParameter {

    private static final Pattern INTEGER = Pattern.compile("-?[0-9]+");

    private IntegerParameter() {}

    /** Returns {@code text} as an integer clamped to {@code min..max}, or {@code defaultValue} if it is not an integer. */
    static int clamp(String text, int min, int max, int defaultValue) {
        if (text == null || !INTEGER.matcher(text).matches()) {
            return defaultValue;
        }
        try {
            return Math.clamp(Long.parseLong(text), min, max);
        } catch (NumberFormatException beyondLong) {
            return text.charAt(0) == '-' ? min : max;
        }
    }
}
