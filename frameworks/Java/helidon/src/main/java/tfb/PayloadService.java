package tfb;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.helidon.common.media.type.MediaTypes;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;

/** Handlers for the payload endpoints: items with totals, and uploads. */
final class PayloadService {

    private static final int BUFFER_BYTES = 64 * 1024;

    private final List<Item> items;

    /** @param items the data set, or null if none is configured */
    PayloadService(List<Item> items) {
        this.items = items;
    }

    void items(ServerRequest request, ServerResponse response) throws JsonProcessingException {
        if (items == null) {
            response.status(Status.SERVICE_UNAVAILABLE_503).send();
            return;
        }
        int count = IntegerParameter.clamp(request.path().pathParameters().get("count"), 0, items.size(), 0);
        int multiplier = IntegerParameter.clamp(request.query().first("m").orElse(null), 1, 1_000_000, 1);
        List<Item.WithTotal> page = items.stream().limit(count).map(item -> item.times(multiplier)).toList();
        Json.send(response, new Item.Page(page, page.size()));
    }

    /** Counts the body's bytes as they arrive. */
    void upload(ServerRequest request, ServerResponse response) throws IOException {
        long bytes = 0;
        if (request.content().hasEntity()) {
            byte[] buffer = new byte[BUFFER_BYTES];
            try (InputStream body = request.content().inputStream()) {
                for (int read; (read = body.read(buffer)) >= 0; ) {
                    bytes += read;
                }
            }
        }
        response.headers().contentType(MediaTypes.TEXT_PLAIN);
        response.send(Long.toString(bytes));
    }
}
