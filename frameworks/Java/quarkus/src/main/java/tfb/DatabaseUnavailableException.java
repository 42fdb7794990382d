package tfb;

import jakarta.ws.rs.WebApplicationException;

/** Replaces an exception of the reactive client, and causes a 503 response. */
final class DatabaseUnavailableException extends WebApplicationException {

    private static final long serialVersionUID = 1L;

    DatabaseUnavailableException(Throwable failure) {
        super(Failures.unavailable("The database", failure));
    }
}
