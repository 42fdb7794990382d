package tfb;

import io.smallrye.mutiny.Uni;
import io.smallrye.common.annotation.NonBlocking;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.ProcessingException;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.stream.Stream;
import org.eclipse.microprofile.rest.client.inject.RestClient;

/** Handles /fan-out by calling the upstream concurrently, without blocking. */
@Path("eventloop/fan-out")
@NonBlocking
@Produces(MediaType.APPLICATION_JSON)
public class EventLoopFanOutResource {

    private final Upstream upstream;

    EventLoopFanOutResource(@RestClient Upstream upstream) {
        this.upstream = upstream;
    }

    @GET
    public Uni<FanOut> fanOut(@QueryParam("calls") @DefaultValue("1") CallCount calls) {
        return Uni.join().all(Stream.generate(upstream::laterValue).limit(calls.value()).toList()).andFailFast()
                .map(values -> new FanOut(calls.value(), values.stream().mapToLong(Long::parseLong).sum()))
                .onFailure().transform(ProcessingException::new);
    }
}
