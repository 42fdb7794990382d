package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Responds with 503 if the database fails, and logs at most one failure per second. */
@Provider
public final class DatabaseFailureMapper implements ExceptionMapper<SQLException> {

    private static final System.Logger LOG = System.getLogger(DatabaseFailureMapper.class.getName());

    private final AtomicLong quietUntil = new AtomicLong(System.nanoTime());

    @Override
    public Response toResponse(SQLException failure) {
        long now = System.nanoTime();
        long until = quietUntil.get();
        if (now - until >= 0 && quietUntil.compareAndSet(until, now + TimeUnit.SECONDS.toNanos(1))) {
            LOG.log(System.Logger.Level.ERROR, "The database failed: {0}", failure.getMessage());
        }
        return Response.status(Response.Status.SERVICE_UNAVAILABLE).build();
    }
}
