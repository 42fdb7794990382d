package tfb;

import jakarta.validation.ConstraintViolation;
import jakarta.validation.ConstraintViolationException;
import jakarta.validation.Path;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;
import java.util.stream.Collectors;

/** Responds with 400 to bodies that Bean Validation rejects. */
@Provider
public class ConstraintFailureMapper implements ExceptionMapper<ConstraintViolationException> {

    @Override
    public Response toResponse(ConstraintViolationException failure) {
        return Problem.of(Status.BAD_REQUEST, failure.getConstraintViolations().stream()
                .map(violation -> member(violation) + " " + violation.getMessage())
                .sorted()
                .collect(Collectors.joining("; ")));
    }

    /**
     * Returns the invalid property's name: the last node of the path, which starts with the method and the parameter.
     */
    private static String member(ConstraintViolation<?> violation) {
        String name = null;
        for (Path.Node node : violation.getPropertyPath()) {
            name = node.toString();
        }
        return name;
    }
}
