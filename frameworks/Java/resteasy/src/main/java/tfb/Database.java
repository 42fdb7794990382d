package tfb;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.pool.HikariPool.PoolInitializationException;
import java.time.Duration;

/** The connection pool. */
final class Database {

    private static final int CONNECT_SECONDS = 5;

    private Database() {}

    /**
     * Opens the pool.
     *
     * @throws IllegalStateException when the database does not answer
     */
    static HikariDataSource open(Settings settings, int connections) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://%s:%d/%s"
                .formatted(settings.dbHost(), settings.dbPort(), settings.dbName()));
        config.setUsername(settings.dbUser());
        config.setPassword(settings.dbPassword());
        config.setMaximumPoolSize(connections);
        config.setConnectionTimeout(Duration.ofSeconds(CONNECT_SECONDS).toMillis());
        config.addDataSourceProperty("connectTimeout", Integer.toString(CONNECT_SECONDS));
        // Prepared on the server, and read in binary, from the first execution rather than from the fifth.
        config.addDataSourceProperty("prepareThreshold", "1");
        try {
            return new HikariDataSource(config);
        } catch (PoolInitializationException failure) {
            throw new IllegalStateException("PostgreSQL at %s:%d: %s"
                    .formatted(settings.dbHost(), settings.dbPort(), failure.getCause().getMessage()), failure);
        }
    }
}
