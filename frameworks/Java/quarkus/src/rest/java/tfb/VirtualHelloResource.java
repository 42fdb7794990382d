package tfb;

import io.smallrye.common.annotation.RunOnVirtualThread;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;

/** Endpoints that use no database, with one virtual thread per request. */
@Path("virtual")
@RunOnVirtualThread
public class VirtualHelloResource {

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

    /** Sleeps for the requested time. Only the virtual thread waits; the carrier thread runs other requests. */
    @GET
    @Path("delay")
    @Produces(MediaType.TEXT_PLAIN)
    public String delay(@QueryParam("ms") @DefaultValue("0") Millis ms) throws InterruptedException {
        Thread.sleep(ms.value());
        return "Hello, World!";
    }
}
