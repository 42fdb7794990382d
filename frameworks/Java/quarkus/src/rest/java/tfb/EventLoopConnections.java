package tfb;

import io.netty.util.concurrent.FastThreadLocal;
import io.smallrye.common.vertx.VertxContext;
import io.smallrye.mutiny.Uni;
import io.smallrye.mutiny.vertx.MutinyHelper;
import io.vertx.core.Context;
import io.vertx.mutiny.core.Vertx;
import io.vertx.mutiny.pgclient.PgConnection;
import io.vertx.pgclient.PgConnectOptions;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.function.Function;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/**
 * One database connection per event loop. All requests on the event loop pipeline their statements on this connection.
 * The first request opens it. If it is lost, the next request opens a new one.
 */
@ApplicationScoped
class EventLoopConnections {

    private static final int PIPELINING_LIMIT = 256;
    private static final int CONNECT_MILLIS = 5000;

    private final FastThreadLocal<Uni<PgConnection>> connections = new FastThreadLocal<>();
    private final Vertx vertx;
    private final PgConnectOptions options;

    EventLoopConnections(
            Vertx vertx,
            @ConfigProperty(name = "DBHOST", defaultValue = "tfb-database") String host,
            @ConfigProperty(name = "DBPORT", defaultValue = "5432") int port,
            @ConfigProperty(name = "DBNAME", defaultValue = "hello_world") String name,
            @ConfigProperty(name = "quarkus.datasource.username") String user,
            @ConfigProperty(name = "quarkus.datasource.password") String password) {
        this.vertx = vertx;
        this.options = new PgConnectOptions()
                .setHost(host)
                .setPort(port)
                .setDatabase(name)
                .setUser(user)
                .setPassword(password)
                .setCachePreparedStatements(true)
                .setPipeliningLimit(PIPELINING_LIMIT);
        options.setConnectTimeout(CONNECT_MILLIS);
    }

    /** Executes statements on the event loop's connection. The result arrives in the request's Vert.x context. */
    <T> Uni<T> with(Function<PgConnection, Uni<? extends T>> statements) {
        Context request = vertx.getOrCreateContext().getDelegate();
        return connection(request).chain(statements).emitOn(MutinyHelper.executor(request));
    }

    private Uni<PgConnection> connection(Context request) {
        Uni<PgConnection> connection = connections.get();
        if (connection == null) {
            connection = open(VertxContext.getRootContext(request));
            connections.set(connection);
        }
        return connection;
    }

    /** Opens a connection in the event loop's own context, because the connection outlives the request. */
    private Uni<PgConnection> open(Context eventLoop) {
        return PgConnection.connect(vertx, options)
                .runSubscriptionOn(MutinyHelper.executor(eventLoop))
                .invoke(opened -> opened.closeHandler(connections::remove))
                .onFailure().invoke(failure -> connections.remove())
                .memoize().indefinitely();
    }
}
