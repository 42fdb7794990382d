package tfb;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.helidon.common.media.type.MediaTypes;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;

/** Handlers for the endpoints that use no database. */
final class HelloService {

    void json(ServerRequest request, ServerResponse response) throws JsonProcessingException {
        Json.send(response, new Message("Hello, World!"));
    }

    void plaintext(ServerRequest request, ServerResponse response) {
        response.headers().contentType(MediaTypes.TEXT_PLAIN);
        response.send("Hello, World!");
    }

    /** Sleeps for the requested time. Only the virtual thread waits; the carrier thread runs other requests. */
    void delay(ServerRequest request, ServerResponse response) throws InterruptedException {
        Thread.sleep(IntegerParameter.clamp(request.query().first("ms").orElse(null), 0, 1000, 0));
        plaintext(request, response);
    }
}
