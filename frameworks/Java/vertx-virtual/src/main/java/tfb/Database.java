package tfb;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.pgclient.PgConnection;
import io.vertx.sqlclient.PreparedQuery;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import io.vertx.sqlclient.Tuple;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** An event loop's single database connection. Queries are pipelined, and a lost connection is reopened. */
final class Database {

    private static final System.Logger LOG = System.getLogger(Database.class.getName());
    private static final int PIPELINING_LIMIT = 256;
    private static final long RECONNECT_MILLIS = 1000;
    private static final long PATIENCE_SECONDS = 3;
    private static final Future<RowSet<Row>> UNREACHABLE = Future.failedFuture("no connection to the database");

    private final Vertx vertx;
    private final PgConnectOptions options;
    private final List<Statement> statements = new ArrayList<>();
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
     * Returns a statement that is prepared when it is first executed on a connection. While disconnected, execution
     * fails.
     */
    Statement statement(String sql) {
        Statement statement = new Statement(sql);
        if (connection != null) {
            statement.query = connection.preparedQuery(sql);
        }
        statements.add(statement);
        return statement;
    }

    /**
     * Connects; after a failure, retries every second. The future always succeeds: when the first attempt has ended
     * (even if it failed), or after 3 s if the attempt takes longer.
     */
    Future<Void> connect() {
        return PgConnection.connect(vertx, options).onSuccess(this::use).onFailure(failure -> {
            LOG.log(System.Logger.Level.ERROR, "PostgreSQL at {0}:{1,number,#}: {2}",
                    options.getHost(), options.getPort(), failure.getMessage());
            reconnect();
        }).timeout(PATIENCE_SECONDS, TimeUnit.SECONDS).otherwiseEmpty().mapEmpty();
    }

    Future<Void> close() {
        closing = true;
        return connection == null ? Future.succeededFuture() : connection.close();
    }

    private void use(PgConnection opened) {
        connection = opened;
        statements.forEach(statement -> statement.query = opened.preparedQuery(statement.sql));
        opened.closeHandler(closed -> {
            connection = null;
            statements.forEach(statement -> statement.query = null);
            reconnect();
        });
    }

    private void reconnect() {
        if (!closing) {
            vertx.setTimer(RECONNECT_MILLIS, timer -> connect());
        }
    }

    /** A statement that is always executed on the current connection. */
    static final class Statement {

        private final String sql;
        private PreparedQuery<RowSet<Row>> query;

        private Statement(String sql) {
            this.sql = sql;
        }

        Future<RowSet<Row>> execute(Tuple parameters) {
            return query == null ? UNREACHABLE : query.execute(parameters);
        }
    }
}
