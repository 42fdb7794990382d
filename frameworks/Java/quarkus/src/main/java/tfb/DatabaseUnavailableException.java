package tfb;

import jakarta.ws.rs.WebApplicationException;

/** A reactive client failed, whatever class its failure has: answered with 503. */
final class DatabaseUnavailableException extends WebApplicationException {

    private static final long serialVersionUID = 1L;

    DatabaseUnavailableException(Throwable failure) {
        super(Failures.unavailable("The database", failure));
    }
}
