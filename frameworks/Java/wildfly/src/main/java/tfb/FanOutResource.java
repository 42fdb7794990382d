package tfb;

import jakarta.annotation.PostConstruct;
import jakarta.annotation.PreDestroy;
import jakarta.annotation.Resource;
import jakarta.enterprise.concurrent.ManagedExecutorService;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.ServiceUnavailableException;
import jakarta.ws.rs.client.Client;
import jakarta.ws.rs.client.ClientBuilder;
import jakarta.ws.rs.core.MediaType;
import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.jboss.resteasy.client.jaxrs.ResteasyClientBuilder;

/** Handles /fan-out. The calls run on the server's managed executor, not on request threads. */
@Path("fan-out")
@ApplicationScoped
@Produces(MediaType.APPLICATION_JSON)
public class FanOutResource {

    private static final System.Logger LOG = System.getLogger(FanOutResource.class.getName());
    private static final AtomicLong LOGGED = new AtomicLong();

    /** Maximum number of connections to the upstream, as in all implementations. The executor has 256 threads, too. */
    private static final int CONNECTIONS = 256;

    @Resource
    private ManagedExecutorService threads;

    private String url;
    private Client client;

    @PostConstruct
    void open() {
        url = System.getenv("UPSTREAM_URL");
        client = ((ResteasyClientBuilder) ClientBuilder.newBuilder())
                .connectionPoolSize(CONNECTIONS)
                .maxPooledPerRoute(CONNECTIONS)
                .build();
    }

    @PreDestroy
    void close() {
        client.close();
    }

    @GET
    public FanOut fanOut(@QueryParam("calls") @DefaultValue("1") CallCount calls) throws InterruptedException {
        if (url == null || url.isEmpty()) {
            throw new ServiceUnavailableException();
        }
        Callable<Long> call = this::value;
        long sum = 0;
        try {
            for (Future<Long> value : threads.invokeAll(Collections.nCopies(calls.value(), call))) {
                sum += value.get();
            }
        } catch (ExecutionException failure) {
            long second = System.nanoTime() / 1_000_000_000;
            if (LOGGED.getAndSet(second) != second) { // at most one line per second
                LOG.log(System.Logger.Level.ERROR, "The upstream failed: {0}", failure.getMessage());
            }
            throw new ServiceUnavailableException();
        }
        return new FanOut(calls.value(), sum);
    }

    private Long value() {
        return Long.valueOf(client.target(url).request().get(String.class));
    }
}
