package tfb;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;

/** The service that /fan-out asks, by MicroProfile's REST client. */
@Path("")
@RegisterRestClient(configKey = "upstream")
public interface Upstream {

    /** A decimal integer. */
    @GET
    String value();
}
