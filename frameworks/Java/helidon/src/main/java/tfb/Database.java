package tfb;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.time.Duration;

/** Creates the connection pool. */
final class Database {

    private static final int CONNECTIONS_PER_CPU = 8;
    private static final int CONNECT_SECONDS = 5;
    private static final long VALIDATION_MILLIS = 500;

    private Database() {}

    /** Creates a pool that connects on demand, so that the server can start before the database. */
    static HikariDataSource open(Settings settings) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://%s:%d/%s?sslmode=disable"
                .formatted(settings.dbHost(), settings.dbPort(), settings.dbName()));
        config.setUsername(settings.dbUser());
        config.setPassword(settings.dbPassword());
        config.setMaximumPoolSize(CONNECTIONS_PER_CPU * Runtime.getRuntime().availableProcessors());
        config.setInitializationFailTimeout(-1);
        config.setConnectionTimeout(Duration.ofSeconds(CONNECT_SECONDS).toMillis());
        config.setValidationTimeout(VALIDATION_MILLIS);
        config.addDataSourceProperty("connectTimeout", Integer.toString(CONNECT_SECONDS));
        // Use server-side prepared statements and binary results from the first execution instead of the fifth.
        config.addDataSourceProperty("prepareThreshold", "1");
        return new HikariDataSource(config);
    }
}
