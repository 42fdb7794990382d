package tfb;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.helidon.common.media.type.MediaTypes;
import io.helidon.webserver.http.ServerResponse;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/**
 * Encodes JSON with Jackson directly, because Helidon's Jackson module has not been released for this Helidon version.
 */
final class Json {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    /** Reads the data set, a JSON array of items. Returns null if {@code file} is empty. */
    static List<Item> readItems(String file) {
        try {
            return file.isEmpty() ? null : List.of(MAPPER.readValue(new File(file), Item[].class));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    static void send(ServerResponse response, Object value) throws JsonProcessingException {
        response.headers().contentType(MediaTypes.APPLICATION_JSON);
        response.send(MAPPER.writeValueAsBytes(value));
    }
}
