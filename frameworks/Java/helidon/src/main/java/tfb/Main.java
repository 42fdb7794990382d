package tfb;

import io.helidon.common.configurable.Resource;
import io.helidon.common.pki.Keys;
import io.helidon.common.tls.Tls;
import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Method;
import io.helidon.http.Status;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.WebServerConfig;
import io.helidon.webserver.http.FilterChain;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.RoutingRequest;
import io.helidon.webserver.http.RoutingResponse;
import io.helidon.webserver.http.ServerResponse;
import io.helidon.webserver.staticcontent.FileSystemHandlerConfig;
import io.helidon.webserver.staticcontent.StaticContentFeature;
import io.helidon.webserver.websocket.WsRouting;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;

/** Starts the server. A separate virtual thread per connection handles requests in sequence and may block. */
public final class Main {

    private static final System.Logger LOG = System.getLogger(Main.class.getName());
    private static final AtomicLong LOGGED = new AtomicLong();
    private static final int BACKLOG = 4096;
    private static final Header SERVER = HeaderValues.createCached(HeaderNames.SERVER, "Helidon");

    private Main() {}

    public static void main(String[] args) {
        Settings settings = Settings.fromEnvironment();
        DatabaseService database = new DatabaseService(Database.open(settings));
        FanOutService fanOut = new FanOutService(settings.upstreamUrl());
        WebServerConfig.Builder server = WebServer.builder()
                .host(settings.host())
                .port(settings.port())
                .backlog(BACKLOG)
                .addRouting(WsRouting.builder().endpoint("/ws", EchoListener::new))
                .routing(routing -> route(routing, settings, database, fanOut));
        if (settings.httpsPort() != 0) {
            server.putSocket("https", https -> https
                    .host(settings.host())
                    .port(settings.httpsPort())
                    .backlog(BACKLOG)
                    .tls(tls(settings))
                    .routing(routing -> route(routing, settings, database, fanOut)));
        }
        server.build().start();
    }

    private static Tls tls(Settings settings) {
        Keys keys = Keys.builder()
                .pem(pem -> pem
                        .key(Resource.create(Path.of(settings.key())))
                        .certChain(Resource.create(Path.of(settings.certificate()))))
                .build();
        return Tls.builder()
                .privateKey(keys.privateKey().orElseThrow())
                .privateKeyCertChain(keys.certChain())
                .build();
    }

    private static void route(
            HttpRouting.Builder routing, Settings settings, DatabaseService database, FanOutService fanOut) {
        HelloService hello = new HelloService();
        PayloadService payloads = new PayloadService(Json.readItems(settings.dataSet()));
        routing.addFilter(Main::everyRequest);
        routing.get("/plaintext", hello::plaintext);
        routing.get("/json", hello::json);
        routing.get("/delay", hello::delay);
        routing.get("/db", database::db);
        routing.get("/queries", database::queries);
        routing.get("/updates", database::updates);
        routing.get("/cached-queries", database::cachedQueries);
        routing.get("/fortunes", database::fortunes);
        routing.get("/fan-out", fanOut::fanOut);
        routing.get("/json/{count}", payloads::items);
        routing.post("/upload", payloads::upload);
        if (!settings.folder().isEmpty()) {
            routing.get("/static/*", (request, response) -> {
                response.beforeSend(() -> HttpDates.correctLastModified(response.headers()));
                response.next();
            });
            routing.register("/static", StaticContentFeature.createService(
                    FileSystemHandlerConfig.create(Path.of(settings.folder()))));
        }
        routing.error(SQLException.class, (request, response, failure) ->
                unavailable(response, "The database", failure));
        routing.error(ExecutionException.class, (request, response, failure) ->
                unavailable(response, "The upstream", failure));
    }

    /**
     * Adds the Server and Date headers, and works around two Helidon 4.5 bugs. HEAD requests are rejected, because even
     * Helidon's default 404 response to HEAD has a body. Connections are closed if the client requests it, because
     * Helidon only announces the close.
     */
    private static void everyRequest(FilterChain chain, RoutingRequest request, RoutingResponse response) {
        response.header(SERVER);
        response.header(HttpDates.now());
        if (request.prologue().method().equals(Method.HEAD)) {
            response.status(Status.NOT_IMPLEMENTED_501).send();
        } else {
            chain.proceed();
        }
        if (request.headers().containsToken(HeaderValues.CONNECTION_CLOSE)) {
            throw new CloseConnectionException("the client asked to close the connection");
        }
    }

    /** Responds with 503, and logs at most one failure per second. */
    private static void unavailable(ServerResponse response, String what, Exception failure) {
        long second = System.nanoTime() / 1_000_000_000;
        if (LOGGED.getAndSet(second) != second) {
            LOG.log(System.Logger.Level.ERROR, "{0} failed: {1}", what, failure.getMessage());
        }
        response.status(Status.SERVICE_UNAVAILABLE_503).send();
    }
}
