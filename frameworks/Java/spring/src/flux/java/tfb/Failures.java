package tfb;

import io.r2dbc.spi.R2dbcException;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.dao.DataAccessException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.reactive.function.client.WebClientException;

/** Responds with 503 if the database or the upstream fails, and logs at most one failure per second. */
@RestControllerAdvice
class Failures {

    private static final System.Logger LOG = System.getLogger(Failures.class.getName());
    private static final AtomicLong LOGGED = new AtomicLong();

    @ExceptionHandler({DataAccessException.class, R2dbcException.class})
    ResponseEntity<Void> database(Exception failure) {
        return unavailable("The database", failure);
    }

    @ExceptionHandler({WebClientException.class, NumberFormatException.class})
    ResponseEntity<Void> upstream(Exception failure) {
        return unavailable("The upstream", failure);
    }

    private static ResponseEntity<Void> unavailable(String what, Exception failure) {
        long second = System.nanoTime() / 1_000_000_000;
        if (LOGGED.getAndSet(second) != second) {
            LOG.log(System.Logger.Level.ERROR, "{0} failed: {1}", what, failure.getMessage());
        }
        return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).build();
    }
}
