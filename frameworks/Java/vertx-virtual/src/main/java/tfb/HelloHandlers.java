package tfb;

import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.RoutingContext;

/** Handlers for the endpoints that use no database. */
final class HelloHandlers {

    private static final CharSequence TEXT_PLAIN = HttpHeaders.createOptimized("text/plain");
    private static final Buffer HELLO = Buffer.buffer("Hello, World!");

    private final Vertx vertx;

    HelloHandlers(Vertx vertx) {
        this.vertx = vertx;
    }

    void json(RoutingContext ctx) {
        ctx.json(new Message("Hello, World!"));
    }

    void plaintext(RoutingContext ctx) {
        ctx.response().putHeader(HttpHeaders.CONTENT_TYPE, TEXT_PLAIN).end(HELLO);
    }

    /** Responds after the requested delay. Unlike Thread.sleep, {@code await} does not block the whole verticle. */
    void delay(RoutingContext ctx) {
        int millis = IntegerParameter.MILLIS.of(ctx);
        if (millis > 0) {
            vertx.timer(millis).await();
        }
        plaintext(ctx);
    }
}
