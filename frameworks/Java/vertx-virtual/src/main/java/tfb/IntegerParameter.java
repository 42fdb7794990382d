package tfb;

import io.vertx.ext.web.RoutingContext;
import java.util.regex.Pattern;

/** Parses integer query parameters. If a parameter is repeated, the first value counts. */
final class IntegerParameter {

    private static final Pattern INTEGER = Pattern.compile("-?[0-9]+");

    private IntegerParameter() {}

    /** Returns the parameter as an integer clamped to {@code min..max}, or {@code defaultValue} if it is not an integer. */
    static int of(RoutingContext ctx, String name, int min, int max, int defaultValue) {
        try {
            return clamp(ctx.request().getParam(name), min, max, defaultValue);
        } catch (IllegalArgumentException malformedQueryString) {
            return defaultValue;
        }
    }

    private static int clamp(String text, int min, int max, int defaultValue) {
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
