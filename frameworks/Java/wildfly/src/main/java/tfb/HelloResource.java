package tfb;

import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;

/** Endpoints that use no database. */
@Path("/")
public class HelloResource {

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

    /** Sleeps for the requested time, which blocks the request's thread. */
    @GET
    @Path("delay")
    @Produces(MediaType.TEXT_PLAIN)
    public String delay(@QueryParam("ms") @DefaultValue("0") Millis ms) throws InterruptedException {
        Thread.sleep(ms.value());
        return "Hello, World!";
    }
}
