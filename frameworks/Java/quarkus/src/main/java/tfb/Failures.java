package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import java.util.concurrent.atomic.AtomicLong;
import org.jboss.logging.Logger;

/** What a request is answered when something that it needs fails. */
final class Failures {

    private static final Logger LOG = Logger.getLogger(Failures.class);
    private static final AtomicLong LOGGED = new AtomicLong();

    private Failures() {}

    /** 503, and one line a second in the log, not a stack trace a request. */
    static Response unavailable(String what, Throwable failure) {
        long second = System.nanoTime() / 1_000_000_000;
        if (LOGGED.getAndSet(second) != second) {
            LOG.errorf("%s failed: %s", what, failure.getMessage());
        }
        return Response.status(Status.SERVICE_UNAVAILABLE).build();
    }
}
