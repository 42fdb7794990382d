package tfb;

import java.time.Duration;
import org.springframework.http.MediaType;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** Handlers for the endpoints that use no database. */
@RestController
class HelloController {

    @GetMapping(path = "/json", produces = MediaType.APPLICATION_JSON_VALUE)
    Mono<Message> json() {
        return Mono.fromSupplier(() -> new Message("Hello, World!"));
    }

    @GetMapping(path = "/plaintext", produces = MediaType.TEXT_PLAIN_VALUE)
    Mono<String> plaintext() {
        return Mono.just("Hello, World!");
    }

    /** Responds after the requested delay, without blocking a thread. */
    @GetMapping(path = "/delay", produces = MediaType.TEXT_PLAIN_VALUE)
    Mono<String> delay(@RequestParam MultiValueMap<String, String> parameters) {
        return Mono.just("Hello, World!").delayElement(Duration.ofMillis(Parameters.ms(parameters)));
    }
}
