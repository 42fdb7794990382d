package tfb;

import jakarta.ws.rs.core.UriInfo;

/** The parameter {@code limit}, read from the URI because {@code @QueryParam} of Quarkus REST ignores empty values. */
final class Limit {

    private static final int DEFAULT = 20;
    private static final int MOST = 100;

    private Limit() {}

    /** Returns the limit (1 to 100) in {@code uri}, or the default if it is missing. Throws a 400 for other values. */
    static int of(UriInfo uri) {
        String text = uri.getQueryParameters().getFirst("limit");
        if (text == null) {
            return DEFAULT;
        }
        int limit = text.matches("[0-9]{1,3}") ? Integer.parseInt(text) : 0;
        if (limit < 1 || limit > MOST) {
            throw Problems.badRequest("limit must be an integer from 1 to " + MOST);
        }
        return limit;
    }
}
