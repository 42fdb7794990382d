package tfb;

import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;

/** Converts HTTP errors thrown by JAX-RS or a resource to problem responses. */
@Provider
public class RequestFailureMapper implements ExceptionMapper<WebApplicationException> {

    @Override
    public Response toResponse(WebApplicationException failure) {
        Response response = failure.getResponse();
        return Problem.in(Response.fromResponse(response), response.getStatusInfo(), failure.getMessage());
    }
}
