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

/** The sum of {@code calls} answers of the upstream, asked for in seven ways. */
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

    /** One after the other, on the thread of the request. */
    long sequential(int calls) {
        return IntStream.range(0, calls).mapToLong(call -> upstream.value()).sum();
    }

    /** The common pool, a thread a CPU but one; the thread of the request takes part. */
    long parallelStream(int calls) {
        return IntStream.range(0, calls).parallel().mapToLong(call -> upstream.value()).sum();
    }

    /** CompletableFuture with its default executor: the common pool, without the thread of the request. */
    long commonPool(int calls) {
        return joined(calls, () -> CompletableFuture.supplyAsync(upstream::value));
    }

    /** CompletableFuture with a hundred threads, shared by all requests. */
    long poolOf100(int calls) {
        return joined(calls, () -> CompletableFuture.supplyAsync(upstream::value, pool));
    }

    /** A virtual thread a call. */
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

    /** Reactor: WebClient and flatMap, without a thread that waits but the request's. */
    long flux(int calls) {
        return Flux.range(0, calls).flatMap(call -> upstream.reactiveValue(), calls).reduce(0L, Long::sum).block();
    }

    /** The JDK's HTTP client without threads that wait: sendAsync, and CompletableFutures joined at the end. */
    long sendAsync(int calls) {
        return joined(calls, upstream::futureValue);
    }

    /** The futures have all been started before the first is waited for. */
    private static long joined(int calls, Supplier<CompletableFuture<Long>> call) {
        return Stream.generate(call).limit(calls).toList().stream().mapToLong(CompletableFuture::join).sum();
    }
}
