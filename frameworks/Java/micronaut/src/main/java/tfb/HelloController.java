package tfb;

import io.micronaut.http.HttpParameters;
import io.micronaut.http.MediaType;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.scheduling.TaskExecutors;
import io.micronaut.scheduling.annotation.ExecuteOn;

/** Endpoints that use no database. */
@Controller
final class HelloController {

    @Get(uri = "/json", headRoute = false)
    Message json() {
        return new Message("Hello, World!");
    }

    @Get(uri = "/plaintext", produces = MediaType.TEXT_PLAIN, headRoute = false)
    String plaintext() {
        return "Hello, World!";
    }

    /** Sleeps for the requested time on a virtual thread. */
    @Get(uri = "/delay", produces = MediaType.TEXT_PLAIN, headRoute = false)
    @ExecuteOn(TaskExecutors.BLOCKING)
    String delay(HttpParameters parameters) throws InterruptedException {
        Thread.sleep(IntegerParameter.clamp(parameters.get("ms"), 0, 1000, 0));
        return "Hello, World!";
    }
}
