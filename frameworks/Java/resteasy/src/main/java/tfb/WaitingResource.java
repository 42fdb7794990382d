package tfb;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.ServiceUnavailableException;
import jakarta.ws.rs.core.MediaType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;

/** Handles /delay and /fan-out. Blocking code runs on virtual threads, so no worker thread waits. */
@Path("/")
public class WaitingResource {

    private static final int MAX_MILLIS = 1000;
    private static final int MAX_CALLS = 100;

    private final ExecutorService threads;
    private final Upstream upstream;

    /** @param upstream the service that /fan-out calls, or null if none is configured */
    public WaitingResource(ExecutorService threads, Upstream upstream) {
        this.threads = threads;
        this.upstream = upstream;
    }

    @GET
    @Path("delay")
    @Produces(MediaType.TEXT_PLAIN)
    public CompletionStage<String> delay(@QueryParam("ms") IntegerParameter ms) {
        int millis = IntegerParameter.clamp(ms, 0, 0, MAX_MILLIS);
        return CompletableFuture.supplyAsync(() -> {
            sleep(millis);
            return "Hello, World!";
        }, threads);
    }

    @GET
    @Path("fan-out")
    @Produces(MediaType.APPLICATION_JSON)
    public CompletionStage<FanOut> fanOut(@QueryParam("calls") IntegerParameter calls) {
        if (upstream == null) {
            throw new ServiceUnavailableException();
        }
        int number = IntegerParameter.clamp(calls, 1, 1, MAX_CALLS);
        return CompletableFuture.supplyAsync(() -> new FanOut(number, upstream.sum(number)), threads);
    }

    private static void sleep(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
