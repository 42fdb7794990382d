package tfb;

import java.math.BigInteger;
import java.util.regex.Pattern;

/**
 * A number in the query string: an integer, or empty for anything else. JAX-RS makes it from the first value of the
 * parameter by {@link #fromString}.
 */
public record IntegerParameter(BigInteger value) {

    private static final Pattern INTEGER = Pattern.compile("-?[0-9]+");

    public static IntegerParameter fromString(String text) {
        return new IntegerParameter(INTEGER.matcher(text).matches() ? new BigInteger(text) : null);
    }

    /** The number clamped to a range; {@code absent} when the parameter is missing (null) or not an integer. */
    static int clamp(IntegerParameter parameter, int absent, int least, int most) {
        if (parameter == null || parameter.value == null) {
            return absent;
        }
        return parameter.value.max(BigInteger.valueOf(least)).min(BigInteger.valueOf(most)).intValue();
    }
}
