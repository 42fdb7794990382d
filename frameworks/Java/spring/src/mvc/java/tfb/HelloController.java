package tfb;

import org.springframework.http.MediaType;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Handlers for the endpoints that use no database. */
@RestController
class HelloController {

    @GetMapping(path = "/json", produces = MediaType.APPLICATION_JSON_VALUE)
    Message json() {
        return new Message("Hello, World!");
    }

    @GetMapping(path = "/plaintext", produces = MediaType.TEXT_PLAIN_VALUE)
    String plaintext() {
        return "Hello, World!";
    }

    /** Sleeps for the requested time, which blocks the request's thread. */
    @GetMapping(path = "/delay", produces = MediaType.TEXT_PLAIN_VALUE)
    String delay(@RequestParam MultiValueMap<String, String> parameters) throws InterruptedException {
        Thread.sleep(Parameters.ms(parameters));
        return "Hello, World!";
    }
}
