package tfb;

import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response.Status;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Semaphore;
import java.util.stream.Stream;

/** A client for the upstream of /fan-out, with persistent connections. */
public final class Upstream {

    private static final Duration PATIENCE = Duration.ofSeconds(5);
    /** Maximum number of connections to the upstream per process, which is the same in all implementations. */
    private static final int MAX_CONNECTIONS = 256;

    private final HttpClient client;
    private final HttpRequest request;
    /** Limits concurrent calls and thus connections (one per HTTP/1.1 call), because the JDK's client sets no limit. */
    private final Semaphore connections = new Semaphore(MAX_CONNECTIONS);

    public Upstream(String url, ExecutorService threads) {
        client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(PATIENCE)
                .executor(threads)
                .build();
        request = HttpRequest.newBuilder(URI.create(url)).timeout(PATIENCE).build();
    }

    /**
     * Calls the upstream concurrently and returns the sum of the results. Blocks until all calls have finished.
     *
     * @throws WebApplicationException (status 502) if a call fails
     */
    long sum(int calls) {
        List<CompletableFuture<HttpResponse<String>>> answers =
                Stream.generate(this::call).limit(calls).toList();
        try {
            return answers.stream().mapToLong(answer -> number(answer.join())).sum();
        } catch (CompletionException | NumberFormatException failure) {
            throw new WebApplicationException(failure, Status.BAD_GATEWAY);
        }
    }

    /** Starts a call, after waiting for a connection if all are in use. */
    private CompletableFuture<HttpResponse<String>> call() {
        connections.acquireUninterruptibly();
        return client.sendAsync(request, BodyHandlers.ofString())
                .whenComplete((response, failure) -> connections.release());
    }

    private static long number(HttpResponse<String> answer) {
        if (answer.statusCode() != Status.OK.getStatusCode()) {
            throw new WebApplicationException(Status.BAD_GATEWAY);
        }
        return Long.parseLong(answer.body().strip());
    }
}
