package tfb;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;

/** A MicroProfile REST client for the service that /fan-out calls. */
@Path("")
@RegisterRestClient(configKey = "upstream")
public interface Upstream {

    /** Returns the response body, a decimal integer. */
    @GET
    String value();
}
