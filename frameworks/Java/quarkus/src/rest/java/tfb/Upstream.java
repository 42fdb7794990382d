package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;

/** A Quarkus REST client for the service that /fan-out calls. */
@Path("")
@RegisterRestClient(configKey = "upstream")
public interface Upstream {

    /** Blocks until the response arrives, and returns the body, a decimal integer. */
    @GET
    String value();

    /** Returns the response body, a decimal integer, without blocking. */
    @GET
    Uni<String> laterValue();
}
