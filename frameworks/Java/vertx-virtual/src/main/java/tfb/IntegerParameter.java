package tfb;

import io.vertx.ext.web.RoutingContext;
import java.math.BigInteger;
import java.util.regex.Pattern;

/** An integer query parameter. Integers are clamped to a range, and anything else becomes the default. */
record IntegerParameter(String name, int defaultValue, int min, int max) {

    static final IntegerParameter QUERIES = new IntegerParameter("queries", 1, 1, 500);
    static final IntegerParameter COUNT = new IntegerParameter("count", 1, 1, 500);
    static final IntegerParameter CALLS = new IntegerParameter("calls", 1, 1, 100);
    static final IntegerParameter MILLIS = new IntegerParameter("ms", 0, 0, 1000);

    static final IntegerParameter ITEMS = new IntegerParameter("count", 0, 0, 50);
    static final IntegerParameter MULTIPLIER = new IntegerParameter("m", 1, 1, 1_000_000);

    private static final int LONGEST_INT = 9;  // an int can hold any number with this many digits
    private static final Pattern INTEGER = Pattern.compile("-?[0-9]+");

    int of(RoutingContext ctx) {
        try {
            return parse(ctx.request().getParam(name));
        } catch (IllegalArgumentException malformedQueryString) {
            return defaultValue;
        }
    }

    int parse(String text) {
        if (text == null || !INTEGER.matcher(text).matches()) {
            return defaultValue;
        }
        if (text.length() > LONGEST_INT) {
            return new BigInteger(text).signum() < 0 ? min : max;
        }
        return Math.clamp(Integer.parseInt(text), min, max);
    }
}
