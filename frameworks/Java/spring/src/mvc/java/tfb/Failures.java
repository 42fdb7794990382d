package tfb;

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.springframework.dao.DataAccessException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.client.RestClientException;
import org.springframework.web.reactive.function.client.WebClientException;

/** Answers 503 when the database or the upstream fails, with one line in the log rather than a stack trace a request. */
@RestControllerAdvice
class Failures {

    private static final System.Logger LOG = System.getLogger(Failures.class.getName());

    @ExceptionHandler(DataAccessException.class)
    ResponseEntity<Void> database(DataAccessException failure) {
        return unavailable("The database", failure);
    }

    @ExceptionHandler({
        RestClientException.class, WebClientException.class, CompletionException.class, ExecutionException.class
    })
    ResponseEntity<Void> upstream(Exception failure) {
        return unavailable("The upstream", failure);
    }

    private static ResponseEntity<Void> unavailable(String what, Exception failure) {
        LOG.log(System.Logger.Level.ERROR, "{0} failed: {1}", what, failure.getMessage());
        return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).build();
    }
}
