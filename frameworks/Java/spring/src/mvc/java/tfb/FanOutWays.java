package tfb;

import jakarta.annotation.PreDestroy;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.springframework.stereotype.Service;
import reactor.core.publisher.Flux;

/** Seven ways to make {@code calls} calls to the upstream and add up the results. */
@Service
class FanOutWays {

    private static final int POOL = 100;

    private final Upstream upstream;
    private final ExecutorService pool =
            Executors.newFixedThreadPool(POOL, Thread.ofPlatform().name("fan-out-", 1).factory());

    FanOutWays(Upstream upstream) {
        this.upstream = upstream;
    }

    @PreDestroy
    void stop() {
        pool.shutdownNow();
    }

    /** Makes the calls in sequence on the request's thread. */
    long sequential(int calls) {
        return IntStream.range(0, calls).mapToLong(call -> upstream.value()).sum();
    }

    /**
     * Uses a parallel stream on the request's thread and the common pool. The pool has one thread fewer than there are
     * CPUs.
     */
    long parallelStream(int calls) {
        return IntStream.range(0, calls).parallel().mapToLong(call -> upstream.value()).sum();
    }

    /** Uses CompletableFuture with the default executor, the common pool. The request's thread only waits. */
    long commonPool(int calls) {
        return joined(calls, () -> CompletableFuture.supplyAsync(upstream::value));
    }

    /** Uses CompletableFuture with a hundred threads that all requests share. */
    long poolOf100(int calls) {
        return joined(calls, () -> CompletableFuture.supplyAsync(upstream::value, pool));
    }

    /** Uses one virtual thread per call. */
    long virtualThreads(int calls) throws InterruptedException, ExecutionException {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            Callable<Long> call = upstream::value;
            List<Future<Long>> answers = threads.invokeAll(Collections.nCopies(calls, call));
            long sum = 0;
            for (Future<Long> answer : answers) {
                sum += answer.get();
            }
            return sum;
        }
    }

    /** Uses Spring's WebClient and Reactor's flatMap. Only the request's thread waits. */
    long flux(int calls) {
        return Flux.range(0, calls).flatMap(call -> upstream.reactiveValue(), calls).reduce(0L, Long::sum).block();
    }

    /** Uses the JDK HTTP client's sendAsync, then joins the CompletableFutures. */
    long sendAsync(int calls) {
        return joined(calls, upstream::futureValue);
    }

    /** Starts all calls, then waits for them and adds up the results. */
    private static long joined(int calls, Supplier<CompletableFuture<Long>> call) {
        return Stream.generate(call).limit(calls).toList().stream().mapToLong(CompletableFuture::join).sum();
    }
}
