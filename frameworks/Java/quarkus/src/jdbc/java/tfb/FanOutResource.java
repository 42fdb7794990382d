package tfb;

import io.smallrye.common.annotation.Blocking;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.ProcessingException;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.MediaType;
import org.eclipse.microprofile.rest.client.inject.RestClient;

/**
 * Handles /fan-out. The calls run in sequence: if workers waited for other workers of the same pool, they could
 * deadlock.
 */
@Path("fan-out")
@Blocking
@Produces(MediaType.APPLICATION_JSON)
public class FanOutResource {

    @RestClient
    Upstream upstream;

    @GET
    public FanOut fanOut(@QueryParam("calls") @DefaultValue("1") CallCount calls) {
        long sum = 0;
        try {
            for (int call = 0; call < calls.value(); call++) {
                sum += Long.parseLong(upstream.value());
            }
        } catch (WebApplicationException | NumberFormatException failure) {
            throw new ProcessingException(failure);
        }
        return new FanOut(calls.value(), sum);
    }
}
