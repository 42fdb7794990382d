package tfb;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.helidon.http.Status;
import io.helidon.webclient.api.WebClient;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;

/** Handles /fan-out by calling the upstream concurrently, with one virtual thread per call. */
final class FanOutService {

    /** Maximum number of connections to the upstream, as in all implementations. */
    private static final int CONNECTIONS = 256;

    private final WebClient client;
    private final String url;
    /** Limits concurrent calls, because Helidon's client limits only its idle connections. */
    private final Semaphore connections = new Semaphore(CONNECTIONS);

    FanOutService(String url) {
        this.url = url;
        this.client = WebClient.builder().connectionCacheSize(CONNECTIONS).build();
    }

    void fanOut(ServerRequest request, ServerResponse response)
            throws InterruptedException, ExecutionException, JsonProcessingException {
        if (url.isEmpty()) {
            response.status(Status.SERVICE_UNAVAILABLE_503).send();
            return;
        }
        int calls = IntegerParameter.clamp(request.query().first("calls").orElse(null), 1, 100, 1);
        Json.send(response, new FanOut(calls, sum(calls)));
    }

    private long sum(int calls) throws InterruptedException, ExecutionException {
        Callable<Long> call = this::value;
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            long sum = 0;
            for (Future<Long> value : threads.invokeAll(Collections.nCopies(calls, call))) {
                sum += value.get();
            }
            return sum;
        }
    }

    private long value() throws InterruptedException {
        connections.acquire();
        try {
            return Long.parseLong(client.get(url).requestEntity(String.class));
        } finally {
            connections.release();
        }
    }
}
