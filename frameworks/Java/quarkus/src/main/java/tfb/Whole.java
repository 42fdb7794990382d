package tfb;

/** Numbers of the query string. */
final class Whole {

    private Whole() {}

    /** The integer that {@code text} is, clamped to {@code least..most}; {@code otherwise} when it is none. */
    static int clamped(String text, int least, int most, int otherwise) {
        if (text == null || !text.matches("-?[0-9]+")) {
            return otherwise;
        }
        try {
            return Math.clamp(Long.parseLong(text), least, most);
        } catch (NumberFormatException beyondLong) {
            return text.charAt(0) == '-' ? least : most;
        }
    }
}
