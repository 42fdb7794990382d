package tfb;

import io.vertx.core.Future;
import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpResponseExpectation;
import io.vertx.core.http.PoolOptions;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.client.HttpResponse;
import io.vertx.ext.web.client.WebClient;
import io.vertx.ext.web.client.WebClientOptions;
import java.util.List;
import java.util.stream.Stream;

/** Handles /fan-out. The calls run concurrently, and the request's virtual thread waits for all of them. */
final class FanOutHandler implements Handler<RoutingContext> {

    private static final int CONNECTIONS = 2000;

    private final WebClient client;
    private final String url;

    FanOutHandler(Vertx vertx, String url) {
        this.client = WebClient.create(vertx, new WebClientOptions(), new PoolOptions().setHttp1MaxSize(CONNECTIONS));
        this.url = url;
    }

    @Override
    public void handle(RoutingContext ctx) {
        if (url.isEmpty()) {
            ctx.response().setStatusCode(503).end();
            return;
        }
        int calls = IntegerParameter.of(ctx, "calls", 1, 100, 1);
        List<Future<Long>> values = Stream.generate(this::value).limit(calls).toList();
        long sum = Future.all(values).await().<Long>list().stream().mapToLong(Long::longValue).sum();
        ctx.json(new FanOut(calls, sum));
    }

    private Future<Long> value() {
        return client.getAbs(url).send()
                .expecting(HttpResponseExpectation.SC_OK)
                .map(HttpResponse::bodyAsString)
                .map(Long::valueOf);
    }
}
