package tfb;

import io.vertx.ext.web.RoutingContext;

/** Numbers of the query string; of a repeated parameter the first counts. */
final class Parameter {

    private Parameter() {}

    /** The integer that the parameter is, clamped to {@code least..most}; {@code otherwise} when it is none. */
    static int of(RoutingContext ctx, String name, int least, int most, int otherwise) {
        try {
            return Whole.clamped(ctx.request().getParam(name), least, most, otherwise);
        } catch (IllegalArgumentException malformedQueryString) {
            return otherwise;
        }
    }
}
