package tfb;

import java.net.URI;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.springframework.beans.TypeMismatchException;
import org.springframework.dao.DataAccessException;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.ProblemDetail;
import org.springframework.http.ResponseEntity;
import org.springframework.transaction.TransactionException;
import org.springframework.validation.FieldError;
import org.springframework.web.bind.MethodArgumentNotValidException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.request.WebRequest;
import org.springframework.web.method.annotation.MethodArgumentTypeMismatchException;
import org.springframework.web.servlet.mvc.method.annotation.ResponseEntityExceptionHandler;

/** Converts all errors to problems (RFC 9457), including Spring's errors for invalid bodies and unknown paths. */
@RestControllerAdvice
class Problems extends ResponseEntityExceptionHandler {

    private static final URI BLANK = URI.create("about:blank");
    private static final System.Logger LOG = System.getLogger(Problems.class.getName());
    private static final AtomicLong LOGGED = new AtomicLong();

    @ExceptionHandler({DataAccessException.class, TransactionException.class})
    ResponseEntity<Object> database(Exception failure, WebRequest request) {
        long second = System.nanoTime() / 1_000_000_000;
        if (LOGGED.getAndSet(second) != second) { // at most one line per second
            LOG.log(System.Logger.Level.ERROR, "The database failed: {0}", failure.getMessage());
        }
        HttpStatus status = HttpStatus.SERVICE_UNAVAILABLE;
        ProblemDetail problem = ProblemDetail.forStatusAndDetail(status, "The database did not respond as expected");
        return handleExceptionInternal(failure, problem, new HttpHeaders(), status, request);
    }

    @Override
    protected ResponseEntity<Object> handleMethodArgumentNotValid(MethodArgumentNotValidException invalid,
            HttpHeaders headers, HttpStatusCode status, WebRequest request) {
        ProblemDetail problem = invalid.getBody();
        problem.setDetail(invalid.getFieldErrors().stream()
                .map(Problems::text)
                .sorted()
                .collect(Collectors.joining("; ")));
        return handleExceptionInternal(invalid, problem, headers, status, request);
    }

    @Override
    protected ResponseEntity<Object> handleTypeMismatch(TypeMismatchException mismatch, HttpHeaders headers,
            HttpStatusCode status, WebRequest request) {
        if (mismatch instanceof MethodArgumentTypeMismatchException argument
                && argument.getParameter().hasParameterAnnotation(PathVariable.class)) {
            ProblemDetail problem = ProblemDetail.forStatusAndDetail(
                    HttpStatus.NOT_FOUND, argument.getValue() + " is not a valid " + argument.getName());
            return handleExceptionInternal(mismatch, problem, headers, HttpStatus.NOT_FOUND, request);
        }
        return super.handleTypeMismatch(mismatch, headers, status, request);
    }

    /** Adds the default type (about:blank), which Spring omits. */
    @Override
    protected ResponseEntity<Object> createResponseEntity(Object body, HttpHeaders headers, HttpStatusCode status,
            WebRequest request) {
        if (body instanceof ProblemDetail problem && problem.getType() == null) {
            problem.setType(BLANK);
        }
        return super.createResponseEntity(body, headers, status, request);
    }

    private static String text(FieldError error) {
        return error.getField() + ": " + error.getDefaultMessage();
    }
}
