package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import java.sql.SQLException;

/** Responds with 503 if the database fails. */
@Provider
public class DatabaseFailureMapper implements ExceptionMapper<SQLException> {

    @Override
    public Response toResponse(SQLException failure) {
        return Failures.unavailable("The database", failure);
    }
}
