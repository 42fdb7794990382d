package tfb;

import jakarta.validation.ConstraintViolation;
import jakarta.validation.ConstraintViolationException;
import jakarta.validation.Path;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import java.util.stream.Collectors;

/** Answers 400 to a body whose values are refused by Bean Validation. */
@Provider
public class ConstraintFailureMapper implements ExceptionMapper<ConstraintViolationException> {

    @Override
    public Response toResponse(ConstraintViolationException failure) {
        return Problem.of(Status.BAD_REQUEST, failure.getConstraintViolations().stream()
                .map(violation -> member(violation) + " " + violation.getMessage())
                .sorted()
                .collect(Collectors.joining("; ")));
    }

    /** The last node of the path: the paths begin with the method and its parameter. */
    private static String member(ConstraintViolation<?> violation) {
        String name = null;
        for (Path.Node node : violation.getPropertyPath()) {
            name = node.toString();
        }
        return name;
    }
}
