package tfb;

import jakarta.ws.rs.WebApplicationException;

/** Replaces the reactive client's various exceptions, and leads to a 503 response. */
final class DatabaseUnavailableException extends WebApplicationException {

    private static final long serialVersionUID = 1L;

    DatabaseUnavailableException(Throwable failure) {
        super(Failures.unavailable("The database", failure));
    }
}
