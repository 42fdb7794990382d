package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import java.util.concurrent.atomic.AtomicLong;
import org.jboss.logging.Logger;

/** Error responses for database and upstream failures. */
final class Failures {

    private static final Logger LOG = Logger.getLogger(Failures.class);
    private static final AtomicLong LOGGED = new AtomicLong();

    private Failures() {}

    /** Returns a 503 response, and logs at most one failure per second. */
    static Response unavailable(String what, Throwable failure) {
        long second = System.nanoTime() / 1_000_000_000;
        if (LOGGED.getAndSet(second) != second) {
            LOG.errorf("%s failed: %s", what, failure.getMessage());
        }
        return Response.status(Status.SERVICE_UNAVAILABLE).build();
    }
}
