package tfb;

import jakarta.ws.rs.WebApplicationException;

/** Replaces all exceptions of reactive clients, and causes a 503. */
final class DatabaseUnavailableException extends WebApplicationException {

    private static final long serialVersionUID = 1L;

    DatabaseUnavailableException(Throwable failure) {
        super(Failures.unavailable("The database", failure));
    }
}
