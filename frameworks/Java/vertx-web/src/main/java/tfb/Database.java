package tfb;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.pgclient.PgConnection;
import io.vertx.sqlclient.PreparedQuery;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;

/** One event loop's connection: queries are pipelined on it, and it is opened again when the database closes it. */
final class Database {

    private static final System.Logger LOG = System.getLogger(Database.class.getName());
    private static final int PIPELINING_LIMIT = 256;
    private static final long RECONNECT_MILLIS = 1000;

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

    Future<Void> connect() {
        return PgConnection.connect(vertx, options)
                .onSuccess(opened -> {
                    connection = opened;
                    opened.closeHandler(closed -> reconnect());
                })
                .recover(failure -> Future.failedFuture(new IllegalStateException("PostgreSQL at %s:%d: %s"
                        .formatted(options.getHost(), options.getPort(), failure.getMessage()), failure)))
                .mapEmpty();
    }

    Future<Void> close() {
        closing = true;
        return connection.close();
    }

    /** The statement is prepared at its first use and cached by the client from then on. */
    PreparedQuery<RowSet<Row>> query(String sql) {
        return connection.preparedQuery(sql);
    }

    private void reconnect() {
        if (closing) {
            return;
        }
        LOG.log(System.Logger.Level.ERROR, "The database closed the connection");
        vertx.setTimer(RECONNECT_MILLIS, timer -> connect().onFailure(failure -> {
            LOG.log(System.Logger.Level.ERROR, failure.getMessage());
            reconnect();
        }));
    }
}
