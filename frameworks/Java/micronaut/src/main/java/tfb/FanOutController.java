package tfb;

import io.micronaut.context.annotation.Value;
import io.micronaut.http.HttpParameters;
import io.micronaut.http.HttpStatus;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.client.HttpClient;
import io.micronaut.http.exceptions.HttpStatusException;
import io.micronaut.scheduling.TaskExecutors;
import io.micronaut.scheduling.annotation.ExecuteOn;
import jakarta.inject.Named;
import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;

/** Handles /fan-out by calling the upstream concurrently, with one virtual thread per call. */
@Controller
@ExecuteOn(TaskExecutors.BLOCKING)
final class FanOutController {

    private final HttpClient client;
    private final ExecutorService threads;
    private final String url;

    FanOutController(
            HttpClient client,
            @Named(TaskExecutors.BLOCKING) ExecutorService threads,
            @Value("${upstream.url:}") String url) {
        this.client = client;
        this.threads = threads;
        this.url = url;
    }

    @Get(uri = "/fan-out", headRoute = false)
    FanOut fanOut(HttpParameters parameters) throws InterruptedException {
        if (url.isEmpty()) {
            throw new HttpStatusException(HttpStatus.SERVICE_UNAVAILABLE, "UPSTREAM_URL is not set");
        }
        int count = IntegerParameter.clamp(parameters.get("calls"), 1, 100, 1);
        Callable<Long> call = () -> Long.parseLong(client.toBlocking().retrieve(url));
        try {
            long sum = 0;
            for (Future<Long> value : threads.invokeAll(Collections.nCopies(count, call))) {
                sum += value.get();
            }
            return new FanOut(count, sum);
        } catch (ExecutionException failure) {
            throw new HttpStatusException(HttpStatus.BAD_GATEWAY, "The upstream failed: " + failure.getCause());
        }
    }
}
