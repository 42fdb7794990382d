package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;

/** The upstream of /fan-out, called with Quarkus's REST client. */
@Path("")
@RegisterRestClient(configKey = "upstream")
public interface Upstream {

    /** Returns a decimal integer. Blocks the thread. */
    @GET
    String value();

    /** Returns a decimal integer asynchronously. */
    @GET
    Uni<String> laterValue();
}
