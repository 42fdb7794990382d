package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import java.sql.SQLException;

/** Answers 503 when the database fails, with one line in the log rather than a stack trace a request. */
@Provider
public final class DatabaseFailureMapper implements ExceptionMapper<SQLException> {

    private static final System.Logger LOG = System.getLogger(DatabaseFailureMapper.class.getName());

    @Override
    public Response toResponse(SQLException failure) {
        LOG.log(System.Logger.Level.ERROR, "The database failed: {0}", failure.getMessage());
        return Response.status(Response.Status.SERVICE_UNAVAILABLE).build();
    }
}
