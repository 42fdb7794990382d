package tfb;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.pgclient.PgConnection;
import io.vertx.sqlclient.PreparedQuery;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import java.util.concurrent.TimeUnit;

/**
 * A verticle's database connection. Queries are pipelined, and a lost connection is reopened. Until the connection is
 * first established, queries fail.
 */
final class Database {

    private static final System.Logger LOG = System.getLogger(Database.class.getName());
    private static final int PIPELINING_LIMIT = 256;
    private static final long RECONNECT_MILLIS = 1000;
    private static final long PATIENCE_SECONDS = 3;

    private final Vertx vertx;
    private final PgConnectOptions options;
    private PgConnection connection;
    private boolean closing;

    Database(Vertx vertx, Settings settings) {
        this.vertx = vertx;
        this.options = new PgConnectOptions()
                .setHost(settings.dbHost())
                .setPort(settings.dbPort())
                .setDatabase(settings.dbName())
                .setUser(settings.dbUser())
                .setPassword(settings.dbPassword())
                .setCachePreparedStatements(true)
                .setPipeliningLimit(PIPELINING_LIMIT);
    }

    /**
     * Connects; after a failure, retries every second. The future succeeds after the first attempt, even if it failed,
     * or after 3 s.
     */
    Future<Void> open() {
        return PgConnection.connect(vertx, options)
                .onSuccess(opened -> {
                    connection = opened;
                    opened.closeHandler(closed -> reconnect());
                })
                .onFailure(failure -> {
                    LOG.log(System.Logger.Level.ERROR, "PostgreSQL at {0}:{1}: {2}",
                            options.getHost(), Integer.toString(options.getPort()), failure.getMessage());
                    reconnect();
                })
                .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                .otherwiseEmpty()
                .mapEmpty();
    }

    Future<Void> close() {
        closing = true;
        return connection == null ? Future.succeededFuture() : connection.close();
    }

    /** Returns a query, which the client prepares on first use and then caches. */
    PreparedQuery<RowSet<Row>> query(String sql) {
        if (connection == null) {
            throw new IllegalStateException("no connection to the database yet");
        }
        return connection.preparedQuery(sql);
    }

    private void reconnect() {
        if (closing) {
            return;
        }
        vertx.setTimer(RECONNECT_MILLIS, timer -> open());
    }
}
