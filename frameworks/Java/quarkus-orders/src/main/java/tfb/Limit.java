package tfb;

import jakarta.ws.rs.core.UriInfo;
import java.util.regex.Pattern;

/**
 * The {@code limit} parameter. It is read from the URI, because Quarkus REST's {@code @QueryParam} ignores empty
 * values.
 */
final class Limit {

    private static final int DEFAULT = 20;
    private static final int MOST = 100;
    private static final Pattern DIGITS = Pattern.compile("[0-9]{1,3}");

    private Limit() {}

    /**
     * Returns the limit in {@code uri}, or the default if it is missing. Fails with 400 unless the limit is from 1 to
     * 100.
     */
    static int of(UriInfo uri) {
        String text = uri.getQueryParameters().getFirst("limit");
        if (text == null) {
            return DEFAULT;
        }
        int limit = DIGITS.matcher(text).matches() ? Integer.parseInt(text) : 0;
        if (limit < 1 || limit > MOST) {
            throw Problems.badRequest("limit must be an integer from 1 to " + MOST);
        }
        return limit;
    }
}
