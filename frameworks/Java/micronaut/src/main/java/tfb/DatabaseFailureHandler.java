package tfb;

import io.micronaut.http.HttpRequest;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.HttpStatus;
import io.micronaut.http.server.exceptions.ExceptionHandler;
import jakarta.inject.Singleton;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicLong;

/** Responds with 503 if the database fails, and logs at most one failure per second. */
@Singleton
final class DatabaseFailureHandler implements ExceptionHandler<SQLException, HttpResponse<?>> {

    private static final System.Logger LOG = System.getLogger(DatabaseFailureHandler.class.getName());

    private final AtomicLong logged = new AtomicLong();

    @Override
    public HttpResponse<?> handle(HttpRequest request, SQLException failure) {
        long second = System.nanoTime() / 1_000_000_000;
        if (logged.getAndSet(second) != second) {
            LOG.log(System.Logger.Level.ERROR, "The database failed: {0}", failure.getMessage());
        }
        return HttpResponse.status(HttpStatus.SERVICE_UNAVAILABLE);
    }
}
