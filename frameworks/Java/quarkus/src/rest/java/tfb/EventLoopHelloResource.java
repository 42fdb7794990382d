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

/** Endpoints that use no database and run on the event loop of the client's connection. */
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

    /** Responds after the requested delay, without blocking a thread. */
    @GET
    @Path("delay")
    @Produces(MediaType.TEXT_PLAIN)
    public Uni<String> delay(@QueryParam("ms") @DefaultValue("0") Millis ms) {
        Uni<String> hello = Uni.createFrom().item("Hello, World!");
        return ms.value() == 0 ? hello : hello.onItem().delayIt().by(Duration.ofMillis(ms.value()));
    }

    /** An anti-pattern: the sleep blocks the event loop and thus all requests on it. */
    @GET
    @Path("delay-blocking")
    @Produces(MediaType.TEXT_PLAIN)
    public String delayBlocking(@QueryParam("ms") @DefaultValue("0") Millis ms) throws InterruptedException {
        Thread.sleep(ms.value());
        return "Hello, World!";
    }
}
