package tfb;

import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.ext.web.Route;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * A verticle's HTTP server, routes and database connection. Handlers run on virtual threads. The verticle switches to a
 * different request only while a handler is in {@code await}.
 */
final class ServerVerticle extends VerticleBase {

    private static final System.Logger LOG = System.getLogger(ServerVerticle.class.getName());
    private static final int BACKLOG = 4096;
    private static final int STOP_SECONDS = 3;
    private static final CharSequence SERVER = HttpHeaders.createOptimized("Vert.x-Web");
    private static final DateTimeFormatter HTTP_DATE =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    private final Settings settings;
    private Database database;
    private HttpServer server;
    private CharSequence date;
    private boolean failureLogged;

    ServerVerticle(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Future<?> start() {
        eachSecond();
        vertx.setPeriodic(1000, tick -> eachSecond());
        database = new Database(vertx, settings);
        return database.connect().compose(tried -> listen()).onFailure(failure -> database.close());
    }

    @Override
    public Future<?> stop() {
        if (server == null) {
            return Future.succeededFuture();
        }
        return server.shutdown(STOP_SECONDS, TimeUnit.SECONDS).eventually(database::close);
    }

    private Future<HttpServer> listen() {
        Router router = router();
        server = vertx.createHttpServer(new HttpServerOptions()
                        .setHost(settings.host())
                        .setPort(settings.port())
                        .setAcceptBacklog(BACKLOG)
                        .setTcpNoDelay(true))
                .requestHandler(request -> router.handle(withHeaders(request)))
                .invalidRequestHandler(request ->
                        HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(withHeaders(request)));
        return server.listen();
    }

    private Router router() {
        HelloHandlers hello = new HelloHandlers(vertx);
        WorldHandlers worlds = new WorldHandlers(new WorldRepository(database), new WorldCache(database));
        FortuneHandler fortunes = new FortuneHandler(new FortuneRepository(database));
        FanOutHandler fanOut = new FanOutHandler(vertx, settings.upstreamUrl());
        Router router = Router.router(vertx);
        get(router, "/plaintext").handler(hello::plaintext);
        get(router, "/json").handler(hello::json);
        get(router, "/db").handler(worlds::db);
        get(router, "/queries").handler(worlds::queries);
        get(router, "/updates").handler(worlds::updates);
        get(router, "/cached-queries").handler(worlds::cachedQueries);
        get(router, "/fortunes").handler(fortunes);
        get(router, "/delay").handler(hello::delay);
        get(router, "/fan-out").handler(fanOut);
        router.errorHandler(500, this::failed);
        return router;
    }

    /** Responds with 503 if the database or the upstream fails, and logs at most one failure per second. */
    private void failed(RoutingContext ctx) {
        if (!failureLogged) {
            failureLogged = true;
            LOG.log(System.Logger.Level.ERROR, "{0} failed: {1}", ctx.request().path(), ctx.failure());
        }
        ctx.response().setStatusCode(503).end();
    }

    private static Route get(Router router, String path) {
        return router.route(HttpMethod.GET, path).method(HttpMethod.HEAD);
    }

    /** Adds the Server and Date headers to the response. */
    private HttpServerRequest withHeaders(HttpServerRequest request) {
        HttpServerResponse response = request.response();
        response.putHeader(HttpHeaders.SERVER, SERVER);
        response.putHeader(HttpHeaders.DATE, date);
        return request;
    }

    private void eachSecond() {
        failureLogged = false;
        date = HttpHeaders.createOptimized(HTTP_DATE.format(ZonedDateTime.now(ZoneOffset.UTC)));
    }
}
