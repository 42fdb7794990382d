package tfb;

import io.vertx.core.Vertx;
import io.vertx.core.net.NetClientOptions;
import io.vertx.pgclient.PgBuilder;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.sqlclient.PoolOptions;
import io.vertx.sqlclient.SqlClient;

/** The database client of an event loop. */
final class Database {

    private static final int PIPELINING_LIMIT = 256;
    private static final int CONNECT_MILLIS = 3000;

    private Database() {}

    /**
     * A client with one connection, on which queries are pipelined. It connects at the first query, and again at the
     * next one after the database has closed the connection; a query that finds no database fails.
     */
    static SqlClient client(Vertx vertx, Settings settings) {
        return PgBuilder.client()
                .with(new PoolOptions().setMaxSize(1))
                .with(new NetClientOptions().setConnectTimeout(CONNECT_MILLIS))
                .connectingTo(new PgConnectOptions()
                        .setHost(settings.dbHost())
                        .setPort(settings.dbPort())
                        .setDatabase(settings.dbName())
                        .setUser(settings.dbUser())
                        .setPassword(settings.dbPassword())
                        .setCachePreparedStatements(true)
                        .setPipeliningLimit(PIPELINING_LIMIT))
                .using(vertx)
                .build();
    }
}
