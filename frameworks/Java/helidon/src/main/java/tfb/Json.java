package tfb;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.helidon.common.media.type.MediaTypes;
import io.helidon.webserver.http.ServerResponse;

/** Encodes JSON with Jackson directly, because Helidon's Jackson module has no release for this version. */
final class Json {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static void send(ServerResponse response, Object value) throws JsonProcessingException {
        response.headers().contentType(MediaTypes.APPLICATION_JSON);
        response.send(MAPPER.writeValueAsBytes(value));
    }
}
