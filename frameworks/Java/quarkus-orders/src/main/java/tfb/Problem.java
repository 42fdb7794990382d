package tfb;

import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.StatusType;

/** The body of error responses (RFC 9457). */
public record Problem(String type, String title, int status, String detail) {

    private static final MediaType PROBLEM_JSON = new MediaType("application", "problem+json");

    /** Builds the response with the given status and a problem as the body. */
    static Response in(Response.ResponseBuilder response, StatusType status, String detail) {
        Problem problem = new Problem("about:blank", status.getReasonPhrase(), status.getStatusCode(), detail);
        return response.status(status).type(PROBLEM_JSON).entity(problem).build();
    }

    static Response of(StatusType status, String detail) {
        return in(Response.status(status), status, detail);
    }
}
