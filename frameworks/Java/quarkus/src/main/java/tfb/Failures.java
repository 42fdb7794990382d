package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import org.jboss.logging.Logger;

/** What a request is answered when something that it needs fails. */
final class Failures {

    private static final Logger LOG = Logger.getLogger(Failures.class);

    private Failures() {}

    /** 503, with one line in the log rather than a stack trace a request. */
    static Response unavailable(String what, Throwable failure) {
        LOG.errorf("%s failed: %s", what, failure.getMessage());
        return Response.status(Status.SERVICE_UNAVAILABLE).build();
    }
}
