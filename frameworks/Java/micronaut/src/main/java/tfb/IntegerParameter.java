package tfb;

/** Parses integer query parameters. */
final class IntegerParameter {

    private IntegerParameter() {}

    /** Returns {@code text} as an integer clamped to {@code min..max}, or {@code defaultValue} if it is not an integer. */
    static int clamp(String text, int min, int max, int defaultValue) {
        if (text == null || !text.matches("-?[0-9]+")) {
            return defaultValue;
        }
        try {
            return Math.clamp(Long.parseLong(text), min, max);
        } catch (NumberFormatException beyondLong) {
            return text.charAt(0) == '-' ? min : max;
        }
    }
}
