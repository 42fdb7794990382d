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
import io.vertx.ext.web.handler.BodyHandler;
import io.vertx.pgclient.PgBuilder;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.sqlclient.Pool;
import io.vertx.sqlclient.PoolOptions;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** An event loop's HTTP server, routes and database connections. */
final class OrdersVerticle extends VerticleBase {

    private static final int MAX_BODY_BYTES = 100 * 1024;
    private static final int BACKLOG = 4096;
    private static final int CONNECTIONS = 8;  // per event loop, and thus per CPU
    private static final int PATIENCE_SECONDS = 5;
    private static final int STOP_SECONDS = 3;
    private static final CharSequence SERVER = HttpHeaders.createOptimized("Vert.x-Web");
    private static final DateTimeFormatter HTTP_DATE =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    private final Settings settings;
    private Pool pool;
    private HttpServer server;
    private CharSequence date;

    OrdersVerticle(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Future<?> start() {
        eachSecond();
        vertx.setPeriodic(1000, tick -> eachSecond());
        pool = pool();
        Router router = router();
        server = vertx.createHttpServer(new HttpServerOptions()
                        .setHost(settings.host())
                        .setPort(settings.port())
                        .setAcceptBacklog(BACKLOG))
                .requestHandler(request -> router.handle(withHeaders(request)))
                .invalidRequestHandler(request ->
                        HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(withHeaders(request)));
        return server.listen();
    }

    @Override
    public Future<?> stop() {
        return server.shutdown(STOP_SECONDS, TimeUnit.SECONDS).eventually(pool::close);
    }

    private Pool pool() {
        return PgBuilder.pool()
                .with(new PoolOptions()
                        .setMaxSize(CONNECTIONS)
                        .setConnectionTimeout(PATIENCE_SECONDS)
                        .setConnectionTimeoutUnit(TimeUnit.SECONDS))
                .connectingTo(new PgConnectOptions()
                        .setHost(settings.dbHost())
                        .setPort(settings.dbPort())
                        .setDatabase(settings.dbName())
                        .setUser(settings.dbUser())
                        .setPassword(settings.dbPassword())
                        .setCachePreparedStatements(true))
                .using(vertx)
                .build();
    }

    private Router router() {
        OrderHandlers orders = new OrderHandlers(new OrderRepository(pool));
        Router router = Router.router(vertx);
        router.route().handler(BodyHandler.create(false).setBodyLimit(MAX_BODY_BYTES)).failureHandler(new Problems());
        router.post("/orders").respond(orders::create);
        get(router, "/orders").respond(orders::newest);
        router.post("/orders/dataload").respond(orders::load);
        get(router, "/orders/:id").respond(orders::read);
        router.put("/orders/:id").respond(orders::changeCard);
        router.delete("/orders/:id").respond(orders::delete);
        get(router, "/orders/:id/items").respond(orders::items);
        router.post("/orders/:id/items/:itemId").respond(orders::addItem);
        get(router, "/orders/:id/items/:itemId").respond(orders::item);
        router.delete("/orders/:id/items/:itemId").respond(orders::deleteItem);
        router.route().handler(ctx -> ctx.fail(404));
        return router;
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
        date = HttpHeaders.createOptimized(HTTP_DATE.format(ZonedDateTime.now(ZoneOffset.UTC)));
    }
}
