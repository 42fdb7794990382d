package tfb;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.client.ReactorClientHttpRequestFactory;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.stereotype.Component;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;
import reactor.netty.resources.ConnectionProvider;

/**
 * The service that /fan-out calls. RestClient and WebClient share the connections of a Reactor Netty client. The JDK's
 * client is used only asynchronously. If a common-pool thread blocked on it, the pool would start an additional thread
 * (ForkJoinPool.ManagedBlocker), so the pool's size would have no effect.
 */
@Component
class Upstream {

    private static final Duration CONNECT = Duration.ofSeconds(5);

    private final URI url;
    private final HttpClient jdk = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(CONNECT)
            .build();
    private final RestClient blocking;
    private final WebClient reactive;
    private final Semaphore jdkCalls;

    Upstream(@Value("${upstream.url}") URI url, @Value("${upstream.connections}") int connections) {
        this.url = url;
        this.jdkCalls = new Semaphore(connections);
        var netty = reactor.netty.http.client.HttpClient.create(ConnectionProvider.builder("upstream")
                .maxConnections(connections)
                .pendingAcquireMaxCount(-1)
                .build());
        this.blocking = RestClient.builder().requestFactory(new ReactorClientHttpRequestFactory(netty)).build();
        this.reactive = WebClient.builder().clientConnector(new ReactorClientHttpConnector(netty)).build();
    }

    /** Calls the upstream and returns the number. Blocks until the response arrives. */
    long value() {
        return Long.parseLong(blocking.get().uri(url).retrieve().body(String.class));
    }

    /** Returns the upstream's number. The call starts on subscription. */
    Mono<Long> reactiveValue() {
        return reactive.get().uri(url).retrieve().bodyToMono(String.class).map(Long::valueOf);
    }

    /**
     * Starts a call, and returns a future of the upstream's number. The JDK's client has no connection limit, so this
     * method blocks while the maximum number of calls is in flight.
     */
    CompletableFuture<Long> futureValue() {
        jdkCalls.acquireUninterruptibly();
        return jdk.sendAsync(HttpRequest.newBuilder(url).build(), BodyHandlers.ofString())
                .whenComplete((response, failure) -> jdkCalls.release())
                .thenApply(Upstream::parsed);
    }

    private static Long parsed(HttpResponse<String> response) {
        if (response.statusCode() != 200) {
            throw new IllegalStateException("the upstream responded with " + response.statusCode());
        }
        return Long.valueOf(response.body());
    }
}
