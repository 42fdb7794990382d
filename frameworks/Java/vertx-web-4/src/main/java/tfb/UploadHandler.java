package tfb;

import io.vertx.core.Handler;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.RoutingContext;

/** Counts the bytes of the body while they arrive. */
final class UploadHandler implements Handler<RoutingContext> {

    private long bytes;

    private UploadHandler() {}

    /** Starts a count for this request. */
    static void count(RoutingContext ctx) {
        new UploadHandler().handle(ctx);
    }

    @Override
    public void handle(RoutingContext ctx) {
        ctx.request()
                .handler(buffer -> bytes += buffer.length())
                .exceptionHandler(ctx::fail)
                .endHandler(end -> ctx.response()
                        .putHeader(HttpHeaders.CONTENT_TYPE, "text/plain")
                        .end(Long.toString(bytes)));
    }
}
