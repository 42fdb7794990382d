package tfb;

import io.smallrye.common.annotation.NonBlocking;
import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.time.Duration;

/** The tests without a database, on the event loop that the request came in on. */
@Path("eventloop")
@NonBlocking
public class EventLoopHelloResource {

    @GET
    @Path("json")
    @Produces(MediaType.APPLICATION_JSON)
    public Message json() {
        return new Message("Hello, World!");
    }

    @GET
    @Path("plaintext")
    @Produces(MediaType.TEXT_PLAIN)
    public String plaintext() {
        return "Hello, World!";
    }

    /** The work of other systems: nothing waits for it. */
    @GET
    @Path("delay")
    @Produces(MediaType.TEXT_PLAIN)
    public Uni<String> delay(@QueryParam("ms") @DefaultValue("0") Millis ms) {
        Uni<String> hello = Uni.createFrom().item("Hello, World!");
        return ms.value() == 0 ? hello : hello.onItem().delayIt().by(Duration.ofMillis(ms.value()));
    }

    /** What must not be done: the event loop sleeps, and with it everybody who shares it. */
    @GET
    @Path("delay-blocking")
    @Produces(MediaType.TEXT_PLAIN)
    public String delayBlocking(@QueryParam("ms") @DefaultValue("0") Millis ms) throws InterruptedException {
        Thread.sleep(ms.value());
        return "Hello, World!";
    }
}
