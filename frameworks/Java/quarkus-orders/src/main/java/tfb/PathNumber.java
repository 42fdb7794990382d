package tfb;

/** Ids in paths. */
final class PathNumber {

    private PathNumber() {}

    /** Returns {@code text} as a positive integer, or 0 if {@code text} is no such integer or exceeds {@code most}. */
    static long of(String text, long most) {
        if (!text.matches("[0-9]{1,19}")) {
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
