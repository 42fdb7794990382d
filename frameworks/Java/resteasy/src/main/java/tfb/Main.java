package tfb;

import com.zaxxer.hikari.HikariDataSource;
import java.util.List;

/**
 * Opens the pool, starts the server, and stops both on SIGTERM. With the argument {@code --io-thread}, resources that
 * never block run on I/O threads instead of worker threads.
 */
public final class Main {

    /**
     * Worker threads per CPU, and also database connections per CPU. As the numbers are equal, no worker waits for a
     * connection, and no connection is idle while requests wait. README.md describes the measurement.
     */
    private static final int WORKERS_PER_CPU = 8;

    private static final String IO_THREAD = "--io-thread";

    private static final System.Logger LOG = System.getLogger(Main.class.getName());

    public static void main(String[] args) {
        try {
            Settings settings = Settings.fromEnvironment();
            int workers = WORKERS_PER_CPU * Runtime.getRuntime().availableProcessors();
            HikariDataSource database = Database.open(settings, workers);
            Server server = Server.start(settings, database, workers, List.of(args).contains(IO_THREAD));
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                server.stop();
                database.close();
            }, "stop"));
        } catch (RuntimeException failure) {
            LOG.log(System.Logger.Level.ERROR, "Cannot start: {0}", failure.getMessage());
            System.exit(1);
        }
    }
}
