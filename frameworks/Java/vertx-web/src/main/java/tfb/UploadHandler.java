package tfb;

import io.vertx.core.Handler;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.RoutingContext;

/** Counts the body's bytes as they arrive. */
final class UploadHandler implements Handler<RoutingContext> {

    private long bytes;

    private UploadHandler() {}

    /** Handles a request with a new handler, because each handler counts the bytes of a single body. */
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
