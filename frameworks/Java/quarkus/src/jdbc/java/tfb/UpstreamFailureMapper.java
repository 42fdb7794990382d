package tfb;

import jakarta.ws.rs.ProcessingException;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;

/** Responds with 503 if the upstream fails. */
@Provider
public class UpstreamFailureMapper implements ExceptionMapper<ProcessingException> {

    @Override
    public Response toResponse(ProcessingException failure) {
        return Failures.unavailable("The upstream", failure);
    }
}
