package tfb;

import io.vertx.core.AbstractVerticle;
import io.vertx.core.Future;
import io.vertx.core.MultiMap;
import io.vertx.core.Promise;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.net.PemKeyCertOptions;
import io.vertx.ext.web.Route;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.FileSystemAccess;
import io.vertx.ext.web.handler.StaticHandler;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/** An event loop's HTTP servers, routes and database connection. */
final class ServerVerticle extends AbstractVerticle {

    private static final System.Logger LOG = System.getLogger(ServerVerticle.class.getName());
    private static final int BACKLOG = 4096;
    /** How long cached file metadata (size and modification time) may be stale. */
    private static final long FILE_MILLIS = 500;
    private static final CharSequence SERVER = HttpHeaders.createOptimized("Vert.x-Web");
    private static final DateTimeFormatter HTTP_DATE =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);
    private static final Pattern ONE_DIGIT_DAY = Pattern.compile(", (?=\\d )");

    private final Settings settings;
    private Database database;
    private final List<HttpServer> servers = new ArrayList<>();
    private CharSequence date;
    private boolean failureLogged;

    ServerVerticle(Settings settings) {
        this.settings = settings;
    }

    @Override
    public void start(Promise<Void> started) {
        eachSecond();
        vertx.setPeriodic(1000, tick -> eachSecond());
        database = new Database(vertx, settings);
        database.connect()
                .compose(tried -> listen())
                .onFailure(failure -> database.close())
                .<Void>mapEmpty()
                .onComplete(started);
    }

    @Override
    public void stop(Promise<Void> stopped) {
        if (servers.isEmpty()) {
            stopped.complete();
        } else {
            Future.join(servers.stream().map(HttpServer::close).toList())
                    .eventually(database::close)
                    .<Void>mapEmpty()
                    .onComplete(stopped);
        }
    }

    private Future<?> listen() {
        Router router = router();
        Future<?> listening = listen(router, options(settings.port()));
        if (settings.cleartextPort() != 0) {
            listening = listening.compose(listens -> listen(router, options(settings.cleartextPort())));
        }
        if (settings.httpsPort() == 0) {
            return listening;
        }
        HttpServerOptions https = options(settings.httpsPort())
                .setSsl(true)
                .setUseAlpn(true)
                .setKeyCertOptions(
                        new PemKeyCertOptions().setCertPath(settings.certificate()).setKeyPath(settings.key()));
        return listening.compose(listens -> listen(router, https));
    }

    /** Returns server options. Compression costs a handler per connection, so it is enabled only with a data set. */
    private HttpServerOptions options(int port) {
        return new HttpServerOptions()
                .setHost(settings.host())
                .setPort(port)
                .setAcceptBacklog(BACKLOG)
                .setCompressionSupported(settings.dataSet() != null);
    }

    private Future<HttpServer> listen(Router router, HttpServerOptions options) {
        HttpServer server = vertx.createHttpServer(options)
                .requestHandler(request -> router.handle(withHeaders(request)))
                .invalidRequestHandler(request ->
                        HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(withHeaders(request)));
        servers.add(server);
        return server.listen();
    }

    private Router router() {
        HelloHandlers hello = new HelloHandlers();
        WaitingHandlers waiting = new WaitingHandlers(vertx, hello, settings.upstreamUrl());
        WorldHandlers worlds = new WorldHandlers(new WorldRepository(database), new WorldCache(database));
        FortuneHandler fortunes = new FortuneHandler(new FortuneRepository(database));
        Router router = Router.router(vertx);
        get(router, "/plaintext").handler(hello::plaintext);
        get(router, "/json").handler(hello::json);
        get(router, "/db").handler(worlds::db);
        get(router, "/queries").handler(worlds::queries);
        get(router, "/updates").handler(worlds::updates);
        get(router, "/cached-queries").handler(worlds::cachedQueries);
        get(router, "/fortunes").handler(fortunes);
        get(router, "/delay").handler(waiting::delay);
        get(router, "/fan-out").handler(waiting::fanOut);
        get(router, "/json/:count").handler(new ItemsHandler(settings.dataSet()));
        router.post("/upload").handler(UploadHandler::count);
        router.get("/ws").handler(ServerVerticle::echo);
        if (settings.folder() != null) {
            get(router, "/static/*").handler(ctx -> {
                MultiMap headers = ctx.response().headers();
                if (settings.dataSet() != null) {
                    // Compression is enabled. Without this header, Vert.x would compress the file for each response.
                    headers.set(HttpHeaders.CONTENT_ENCODING, HttpHeaders.IDENTITY);
                }
                ctx.addHeadersEndHandler(end -> correctDates(headers));
                ctx.next();
            }).handler(StaticHandler.create(FileSystemAccess.ROOT, settings.folder())
                    .setFilesReadOnly(false)
                    .setCacheEntryTimeout(FILE_MILLIS));
        }
        router.errorHandler(500, this::failed);
        return router;
    }

    /** Writes days with two digits, as RFC 9110 requires. The static handler writes "Tue, 1 Dec 2026". */
    private void correctDates(MultiMap headers) {
        headers.set(HttpHeaders.DATE, date);
        String modified = headers.get(HttpHeaders.LAST_MODIFIED);
        if (modified != null) {
            headers.set(HttpHeaders.LAST_MODIFIED, ONE_DIGIT_DAY.matcher(modified).replaceFirst(", 0"));
        }
    }

    /** Echoes each message on a WebSocket connection. Vert.x itself replies to pings and close frames. */
    private static void echo(RoutingContext ctx) {
        ctx.request().toWebSocket()
                .onSuccess(socket -> {
                    socket.textMessageHandler(socket::writeTextMessage);
                    socket.binaryMessageHandler(socket::writeBinaryMessage);
                })
                .onFailure(failure -> {
                    if (!ctx.response().ended()) {
                        ctx.response().setStatusCode(426).end();
                    }
                });
    }

    /** Responds with 503 if the database fails, and logs at most one failure per second. */
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
