package tfb;

import io.vertx.core.Future;
import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.http.PoolOptions;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.client.HttpRequest;
import io.vertx.ext.web.client.WebClient;
import io.vertx.ext.web.client.WebClientOptions;
import io.vertx.ext.web.codec.BodyCodec;
import java.util.ArrayList;
import java.util.List;

/** Handles /fan-out. The calls run concurrently, and the request's virtual thread waits for all of them. */
final class FanOutHandler implements Handler<RoutingContext> {

    /** Upstream connections per event loop: an equal share of the 256 connections that each implementation may open. */
    private static final int CONNECTIONS = Math.max(1, 256 / Runtime.getRuntime().availableProcessors());

    private static final long CALL_MILLIS = 5000;

    private final HttpRequest<String> upstream;

    /** @param upstreamUrl the URL that /fan-out calls, or an empty string if none is configured */
    FanOutHandler(Vertx vertx, String upstreamUrl) {
        this.upstream = upstreamUrl.isEmpty() ? null : WebClient.create(vertx,
                        new WebClientOptions().setUserAgentEnabled(false), new PoolOptions().setHttp1MaxSize(CONNECTIONS))
                .getAbs(upstreamUrl)
                .timeout(CALL_MILLIS)
                .as(BodyCodec.string());
    }

    @Override
    public void handle(RoutingContext ctx) {
        if (upstream == null) {
            ctx.fail(503);
            return;
        }
        List<Future<Long>> calls = new ArrayList<>();
        for (int i = IntegerParameter.CALLS.of(ctx); i > 0; i--) {
            calls.add(call());
        }
        Future.all(calls).await();
        ctx.json(new FanOut(calls.size(), calls.stream().mapToLong(Future::result).sum()));
    }

    private Future<Long> call() {
        return upstream.send().map(response -> {
            if (response.statusCode() != 200) {
                throw new IllegalStateException("the upstream responded with " + response.statusCode());
            }
            return Long.valueOf(response.body().strip());
        });
    }
}
