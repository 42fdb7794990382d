package tfb;

import java.math.BigInteger;
import java.util.regex.Pattern;

/**
 * An integer query parameter. {@code value} is null if the text is not an integer. If a parameter is repeated, JAX-RS
 * passes the first value to {@link #fromString}.
 */
public record IntegerParameter(BigInteger value) {

    private static final Pattern INTEGER = Pattern.compile("-?[0-9]+");

    public static IntegerParameter fromString(String text) {
        return new IntegerParameter(INTEGER.matcher(text).matches() ? new BigInteger(text) : null);
    }

    /**
     * Returns the value clamped to {@code min..max}, or {@code defaultValue} if the parameter is missing (null) or not
     * an integer.
     */
    static int clamp(IntegerParameter parameter, int defaultValue, int min, int max) {
        if (parameter == null || parameter.value == null) {
            return defaultValue;
        }
        return parameter.value.max(BigInteger.valueOf(min)).min(BigInteger.valueOf(max)).intValue();
    }
}
