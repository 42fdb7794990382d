package tfb;

import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import org.hibernate.HibernateException;

/** Responds with 503 if the database fails. */
@Provider
public class PersistenceFailureMapper implements ExceptionMapper<HibernateException> {

    @Override
    public Response toResponse(HibernateException failure) {
        return Failures.unavailable("The database", failure);
    }
}
