package tfb;

/** The parameter {@code queries}: an integer clamped to 1..500; absent, empty or not an integer means 1. */
final class QueryCount {

    private static final int MAX = 500;

    private QueryCount() {}

    static int of(String text) {
        if (!isInteger(text) || text.charAt(0) == '-') {
            return 1;
        }
        try {
            return Math.clamp(Integer.parseInt(text), 1, MAX);
        } catch (NumberFormatException outOfIntRange) {
            return MAX;
        }
    }

    private static boolean isInteger(String text) {
        if (text == null || text.isEmpty()) {
            return false;
        }
        int first = text.charAt(0) == '-' || text.charAt(0) == '+' ? 1 : 0;
        return first < text.length() && text.substring(first).chars().allMatch(c -> c >= '0' && c <= '9');
    }
}
