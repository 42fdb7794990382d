package tfb;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

/** Creates the connection pool. */
final class Database {

    /** Time limit for obtaining a connection. It is short, because a waiting worker cannot serve other requests. */
    private static final long CONNECTION_MILLIS = 1000;
    private static final long VALIDATION_MILLIS = 500;
    private static final String CONNECT_SECONDS = "3";
    private static final long START_WITHOUT_DATABASE = -1;

    private Database() {}

    /** Creates the pool. If the database does not respond, the pool keeps trying to connect in the background. */
    static HikariDataSource open(Settings settings, int connections) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://%s:%d/%s?sslmode=disable"
                .formatted(settings.dbHost(), settings.dbPort(), settings.dbName()));
        config.setUsername(settings.dbUser());
        config.setPassword(settings.dbPassword());
        config.setMaximumPoolSize(connections);
        config.setConnectionTimeout(CONNECTION_MILLIS);
        config.setValidationTimeout(VALIDATION_MILLIS);
        config.setInitializationFailTimeout(START_WITHOUT_DATABASE);
        config.addDataSourceProperty("connectTimeout", CONNECT_SECONDS);
        // Use server-side prepared statements and binary results from the first execution instead of the fifth.
        config.addDataSourceProperty("prepareThreshold", "1");
        return new HikariDataSource(config);
    }
}
