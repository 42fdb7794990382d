package tfb;

import io.netty.handler.codec.http.HttpResponseStatus;
import io.vertx.core.Handler;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.json.JsonObject;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.HttpException;
import java.util.concurrent.TimeUnit;

/** Responds to failures with a problem (RFC 9457). Failures without a status count as database failures (503). */
final class Problems implements Handler<RoutingContext> {

    private static final System.Logger LOG = System.getLogger(Problems.class.getName());
    private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(1);

    private long quietUntil = System.nanoTime();

    @Override
    public void handle(RoutingContext ctx) {
        int status = ctx.statusCode() == 500 ? 503 : ctx.statusCode();
        String title = HttpResponseStatus.valueOf(status).reasonPhrase();
        String detail = title;
        if (ctx.failure() instanceof HttpException stated) {
            detail = stated.getPayload();
        } else if (status >= 500) {
            detail = "The database did not respond as expected";
            complain(ctx);
        }
        ctx.response()
                .setStatusCode(status)
                .putHeader(HttpHeaders.CONTENT_TYPE, "application/problem+json")
                .end(new JsonObject()
                        .put("type", "about:blank")
                        .put("title", title)
                        .put("status", status)
                        .put("detail", detail)
                        .toBuffer());
    }

    /** Logs at most one failure per second. */
    private void complain(RoutingContext ctx) {
        if (System.nanoTime() - quietUntil >= 0) {
            quietUntil = System.nanoTime() + QUIET_NANOS;
            LOG.log(System.Logger.Level.ERROR, "{0} {1} failed: {2}",
                    ctx.request().method(), ctx.request().path(), ctx.failure());
        }
    }
}
