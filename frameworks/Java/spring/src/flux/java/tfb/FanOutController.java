package tfb;

import java.net.URI;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.MediaType;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.netty.http.client.HttpClient;
import reactor.netty.resources.ConnectionProvider;

/** Handles /fan-out by calling the upstream concurrently, without blocking a thread. */
@RestController
class FanOutController {

    private final URI url;
    private final WebClient upstream;

    FanOutController(@Value("${upstream.url}") URI url, @Value("${upstream.connections}") int connections) {
        this.url = url;
        this.upstream = WebClient.builder()
                .clientConnector(new ReactorClientHttpConnector(HttpClient.create(ConnectionProvider.builder("upstream")
                        .maxConnections(connections)
                        .pendingAcquireMaxCount(-1)
                        .build())))
                .build();
    }

    @GetMapping(path = "/fan-out", produces = MediaType.APPLICATION_JSON_VALUE)
    Mono<FanOut> fanOut(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return Flux.range(0, calls)
                .flatMap(call -> value(), calls)
                .reduce(0L, Long::sum)
                .map(sum -> new FanOut(calls, sum));
    }

    private Mono<Long> value() {
        return upstream.get().uri(url).retrieve().bodyToMono(String.class).map(Long::valueOf);
    }
}
