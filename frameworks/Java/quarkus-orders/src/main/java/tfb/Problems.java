package tfb;

import jakarta.ws.rs.BadRequestException;
import jakarta.ws.rs.ClientErrorException;
import jakarta.ws.rs.NotFoundException;
import jakarta.ws.rs.core.Response.Status;

/** Creates the exceptions for invalid requests. RequestFailureMapper converts them to problem responses (RFC 9457). */
final class Problems {

    private Problems() {}

    static BadRequestException badRequest(String detail) {
        return new BadRequestException(detail);
    }

    static BadRequestException unknownItem(int itemId) {
        return badRequest("There is no item " + itemId);
    }

    static NotFoundException notFound(String detail) {
        return new NotFoundException(detail);
    }

    static NotFoundException unknownOrder() {
        return notFound("There is no such order");
    }

    static NotFoundException notInOrder(int itemId) {
        return notFound("Item " + itemId + " is not in the order");
    }

    static ClientErrorException alreadyInOrder(int itemId) {
        return new ClientErrorException("Item " + itemId + " is already in the order", Status.CONFLICT);
    }
}
