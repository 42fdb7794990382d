package tfb;

/**
 * The parameter {@code queries}: an integer clamped to 1..500; absent, empty or not an integer means 1.
 * JAX-RS makes it from the first value of the parameter by {@link #fromString}.
 */
public record QueryCount(int value) {

    private static final int MAX = 500;

    public static QueryCount fromString(String text) {
        return new QueryCount(clamp(text));
    }

    private static int clamp(String text) {
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
        int first = !text.isEmpty() && (text.charAt(0) == '-' || text.charAt(0) == '+') ? 1 : 0;
        return first < text.length() && text.substring(first).chars().allMatch(c -> c >= '0' && c <= '9');
    }
}
