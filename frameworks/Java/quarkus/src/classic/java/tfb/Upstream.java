package tfb;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import org.eclipse.microprofile.rest.client.inject.RegisterRestClient;

/** The upstream of /fan-out, called with MicroProfile's REST client. */
@Path("")
@RegisterRestClient(configKey = "upstream")
public interface Upstream {

    /** Returns a decimal integer. */
    @GET
    String value();
}
