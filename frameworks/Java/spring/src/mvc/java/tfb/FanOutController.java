package tfb;

import java.util.concurrent.ExecutionException;
import org.springframework.http.MediaType;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Handles the seven /fan-out variants, which call the upstream in different ways. */
@RestController
class FanOutController {

    private final FanOutWays ways;

    FanOutController(FanOutWays ways) {
        this.ways = ways;
    }

    @GetMapping(path = "/fan-out/sequential", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut sequential(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.sequential(calls));
    }

    @GetMapping(path = "/fan-out/parallel-stream", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut parallelStream(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.parallelStream(calls));
    }

    @GetMapping(path = "/fan-out/common-pool", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut commonPool(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.commonPool(calls));
    }

    @GetMapping(path = "/fan-out/pool-of-100", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut poolOf100(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.poolOf100(calls));
    }

    @GetMapping(path = "/fan-out/virtual-threads", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut virtualThreads(@RequestParam MultiValueMap<String, String> parameters)
            throws InterruptedException, ExecutionException {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.virtualThreads(calls));
    }

    @GetMapping(path = "/fan-out/flux", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut flux(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.flux(calls));
    }

    @GetMapping(path = "/fan-out/send-async", produces = MediaType.APPLICATION_JSON_VALUE)
    FanOut sendAsync(@RequestParam MultiValueMap<String, String> parameters) {
        int calls = Parameters.calls(parameters);
        return new FanOut(calls, ways.sendAsync(calls));
    }
}
