package tfb;

import org.springframework.http.MediaType;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Handlers for the tests without a database. */
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

    /** Simulates a slow remote system. The thread waits. */
    @GetMapping(path = "/delay", produces = MediaType.TEXT_PLAIN_VALUE)
    String delay(@RequestParam MultiValueMap<String, String> parameters) throws InterruptedException {
        Thread.sleep(Parameters.ms(parameters));
        return "Hello, World!";
    }
}
