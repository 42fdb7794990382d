package tfb;

import com.fasterxml.jackson.core.JsonParser;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.file.FileSystemOptions;
import io.vertx.core.json.jackson.DatabindCodec;
import io.vertx.core.transport.Transport;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Deploys one verticle per CPU, each on a separate event loop, and stops the verticles on SIGTERM. */
public final class Main {

    private static final System.Logger LOG = System.getLogger(Main.class.getName());
    private static final int STOP_SECONDS = 4;

    public static void main(String[] args) {
        try {
            start(Settings.fromEnvironment());
        } catch (Exception failure) {  // await() throws undeclared checked exceptions
            LOG.log(System.Logger.Level.ERROR, "Cannot start: {0}", failure.toString());
            System.exit(1);
        }
    }

    private static void start(Settings settings) {
        // By default, Vert.x accepts comments, which JSON does not allow.
        DatabindCodec.mapper().disable(JsonParser.Feature.ALLOW_COMMENTS);
        int eventLoops = Runtime.getRuntime().availableProcessors();
        Transport transport = transport();
        LOG.log(System.Logger.Level.INFO, "Transport: {0}", transport.name());
        Vertx vertx = Vertx.builder()
                .with(new VertxOptions()
                        .setEventLoopPoolSize(eventLoops)
                        .setFileSystemOptions(new FileSystemOptions()
                                .setFileCachingEnabled(false)
                                .setClassPathResolvingEnabled(false)))
                .withTransport(transport)
                .build();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(vertx), "stop"));
        DeploymentOptions options = new DeploymentOptions().setInstances(eventLoops);
        vertx.deployVerticle(() -> new OrdersVerticle(settings), options).await();
    }

    /** Returns io_uring if the kernel and the seccomp profile permit it, else epoll if available, else NIO. */
    private static Transport transport() {
        for (Transport candidate : new Transport[] {Transport.IO_URING, Transport.EPOLL}) {
            if (candidate != null && candidate.available()) {
                return candidate;
            }
            LOG.log(System.Logger.Level.WARNING, "No {0}", candidate == null ? "native transport"
                    : candidate.name() + ": " + candidate.unavailabilityCause().getMessage());
        }
        return Transport.NIO;
    }

    private static void stop(Vertx vertx) {
        try {
            vertx.close().await(STOP_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException stillBusy) {
            LOG.log(System.Logger.Level.WARNING, "Not all connections closed in {0} s", STOP_SECONDS);
        }
    }
}
