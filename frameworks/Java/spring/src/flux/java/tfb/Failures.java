package tfb;

import io.r2dbc.spi.R2dbcException;
import org.springframework.dao.DataAccessException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.reactive.function.client.WebClientException;

/** Answers 503 when the database or the upstream fails, with one line in the log rather than a stack trace a request. */
@RestControllerAdvice
class Failures {

    private static final System.Logger LOG = System.getLogger(Failures.class.getName());

    @ExceptionHandler({DataAccessException.class, R2dbcException.class})
    ResponseEntity<Void> database(Exception failure) {
        return unavailable("The database", failure);
    }

    @ExceptionHandler(WebClientException.class)
    ResponseEntity<Void> upstream(WebClientException failure) {
        return unavailable("The upstream", failure);
    }

    private static ResponseEntity<Void> unavailable(String what, Exception failure) {
        LOG.log(System.Logger.Level.ERROR, "{0} failed: {1}", what, failure.getMessage());
        return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).build();
    }
}
