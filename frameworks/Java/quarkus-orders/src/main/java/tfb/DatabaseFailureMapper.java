package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import org.hibernate.HibernateException;
import org.jboss.logging.Logger;

/** Responds with 503 if the database fails, and logs one line instead of a stack trace. */
@Provider
public class DatabaseFailureMapper implements ExceptionMapper<HibernateException> {

    private static final Logger LOG = Logger.getLogger(DatabaseFailureMapper.class);

    @Override
    public Response toResponse(HibernateException failure) {
        LOG.errorf("The database failed: %s", failure);
        return Problem.of(Status.SERVICE_UNAVAILABLE, "The database failed");
    }
}
