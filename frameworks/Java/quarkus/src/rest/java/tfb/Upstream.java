package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;

/** The service that /fan-out asks, by Quarkus's REST client. */
@Path("")
@RegisterRestClient(configKey = "upstream")
public interface Upstream {

    /** A decimal integer; the thread waits for it. */
    @GET
    String value();

    /** A decimal integer, when it is there. */
    @GET
    Uni<String> laterValue();
}
