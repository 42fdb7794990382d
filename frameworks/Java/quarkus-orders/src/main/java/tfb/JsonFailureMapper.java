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

/** Answers 400 to a body that is not the JSON that is expected; one for each class of which a stack has a mapper of its own. */
abstract class JsonFailureMapper<E extends JsonProcessingException> implements ExceptionMapper<E> {

    /** Of two mappers of one class and one priority either may be taken. */
    private static final int BEFORE_THE_STACKS = Priorities.USER - 1;

    @Override
    public Response toResponse(E failure) {
        return Problem.of(Status.BAD_REQUEST, "The body is not the JSON that is expected: " + failure.getOriginalMessage());
    }

    /** It is no JSON. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Parse extends JsonFailureMapper<JsonParseException> {}

    /** It is other JSON: Classic. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Mapping extends JsonFailureMapper<JsonMappingException> {}

    /** It is other JSON: Quarkus REST. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Mismatch extends JsonFailureMapper<MismatchedInputException> {}

    /** Anything else, such as a number that is out of range. */
    @Provider
    @Priority(BEFORE_THE_STACKS)
    public static class Other extends JsonFailureMapper<JsonProcessingException> {}
}
