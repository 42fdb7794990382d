package tfb;

import jakarta.ws.rs.WebApplicationException;

/** An exception that wraps the reactive client's exceptions and causes a 503 response. */
final class DatabaseUnavailableException extends WebApplicationException {

    private static final long serialVersionUID = 1L;

    DatabaseUnavailableException(Throwable failure) {
        super(Failures.unavailable("The database", failure));
    }
}
