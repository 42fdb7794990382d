package tfb;

import io.quarkus.virtual.threads.VirtualThreads;
import io.smallrye.common.annotation.RunOnVirtualThread;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.ProcessingException;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.eclipse.microprofile.rest.client.inject.RestClient;

/** Handles /fan-out by calling the upstream concurrently, with one virtual thread per call. */
@Path("virtual/fan-out")
@RunOnVirtualThread
@Produces(MediaType.APPLICATION_JSON)
public class VirtualFanOutResource {

    private final Upstream upstream;
    private final ExecutorService threads;

    VirtualFanOutResource(@RestClient Upstream upstream, @VirtualThreads ExecutorService threads) {
        this.upstream = upstream;
        this.threads = threads;
    }

    @GET
    public FanOut fanOut(@QueryParam("calls") @DefaultValue("1") CallCount calls) throws InterruptedException {
        Callable<String> call = upstream::value;
        List<Future<String>> values = threads.invokeAll(Stream.generate(() -> call).limit(calls.value()).toList());
        long sum = 0;
        for (Future<String> value : values) {
            sum += result(value);
        }
        return new FanOut(calls.value(), sum);
    }

    private static long result(Future<String> value) throws InterruptedException {
        try {
            return Long.parseLong(value.get());
        } catch (ExecutionException | NumberFormatException failure) {
            throw new ProcessingException(failure);
        }
    }
}
