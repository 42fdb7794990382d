package tfb;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.micronaut.context.annotation.Bean;
import io.micronaut.context.annotation.ConfigurationProperties;
import io.micronaut.context.annotation.Factory;
import jakarta.inject.Singleton;
import java.time.Duration;
import javax.sql.DataSource;

/** Factory for the connection pool, the repositories and the cache. */
@Factory
final class Database {

    private static final int CONNECTIONS_PER_CPU = 8;
    private static final int CONNECT_SECONDS = 5;
    private static final long VALIDATION_MILLIS = 500;

    /** Database settings from application.properties. */
    @ConfigurationProperties("database")
    record Settings(String host, int port, String name, String user, String password) {}

    /** Creates a pool that connects on demand, so that the server can start before the database. */
    @Singleton
    @Bean(preDestroy = "close")
    HikariDataSource pool(Settings settings) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://%s:%d/%s?sslmode=disable"
                .formatted(settings.host(), settings.port(), settings.name()));
        config.setUsername(settings.user());
        config.setPassword(settings.password());
        config.setMaximumPoolSize(CONNECTIONS_PER_CPU * Runtime.getRuntime().availableProcessors());
        config.setInitializationFailTimeout(-1);
        config.setConnectionTimeout(Duration.ofSeconds(CONNECT_SECONDS).toMillis());
        config.setValidationTimeout(VALIDATION_MILLIS);
        config.addDataSourceProperty("connectTimeout", Integer.toString(CONNECT_SECONDS));
        // Use server-side prepared statements and binary results from the first execution instead of the fifth.
        config.addDataSourceProperty("prepareThreshold", "1");
        return new HikariDataSource(config);
    }

    @Singleton
    WorldRepository worlds(DataSource pool) {
        return new WorldRepository(pool);
    }

    @Singleton
    WorldCache cache(WorldRepository worlds) {
        return new WorldCache(worlds);
    }

    @Singleton
    FortuneRepository fortunes(DataSource pool) {
        return new FortuneRepository(pool);
    }
}
