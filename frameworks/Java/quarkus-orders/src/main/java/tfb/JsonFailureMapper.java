package tfb;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;
import jakarta.annotation.Priority;
import jakarta.ws.rs.Priorities;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;

/**
 * Responds with 400 to invalid JSON bodies. A separate mapper is needed for each exception class that RESTEasy or
 * Quarkus REST maps by default.
 */
abstract class JsonFailureMapper<E extends JsonProcessingException> implements ExceptionMapper<E> {

    /** Takes precedence over mappers with the default priority. */
    private static final int BEFORE_THE_STACKS = Priorities.USER - 1;

    @Override
    public Response toResponse(E failure) {
        return Problem.of(Status.BAD_REQUEST, "The body is not the expected JSON: " + failure.getOriginalMessage());
    }

    /** Handles malformed JSON. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Parse extends JsonFailureMapper<JsonParseException> {}

    /** Handles JSON of an unexpected shape in RESTEasy Classic. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Mapping extends JsonFailureMapper<JsonMappingException> {}

    /** Handles JSON of an unexpected shape in Quarkus REST. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Mismatch extends JsonFailureMapper<MismatchedInputException> {}

    /** Handles other errors, such as a number out of range. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Other extends JsonFailureMapper<JsonProcessingException> {}
}
