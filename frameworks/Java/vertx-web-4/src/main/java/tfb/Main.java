package tfb;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.file.FileSystemOptions;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Deploys one verticle per CPU, each on a separate event loop, and stops the verticles on SIGTERM. */
public final class Main {

    private static final System.Logger LOG = System.getLogger(Main.class.getName());
    private static final int START_SECONDS = 60;
    private static final int STOP_SECONDS = 4;

    public static void main(String[] args) throws InterruptedException {
        try {
            start(Settings.fromEnvironment());
        } catch (ExecutionException | TimeoutException | RuntimeException failure) {
            LOG.log(System.Logger.Level.ERROR, "Cannot start: {0}", failure.toString());
            System.exit(1);
        }
    }

    private static void start(Settings settings) throws InterruptedException, ExecutionException, TimeoutException {
        int eventLoops = Runtime.getRuntime().availableProcessors();
        // Selects io_uring if the kernel and the seccomp profile permit it, else epoll if available, else NIO.
        Vertx vertx = Vertx.vertx(new VertxOptions()
                .setEventLoopPoolSize(eventLoops)
                .setPreferNativeTransport(true)
                .setFileSystemOptions(new FileSystemOptions()
                        .setFileCachingEnabled(false)
                        .setClassPathResolvingEnabled(false)));
        if (!vertx.isNativeTransportEnabled()) {
            LOG.log(System.Logger.Level.WARNING, "No native transport: {0}",
                    String.valueOf(vertx.unavailableNativeTransportCause()));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(vertx), "stop"));
        await(vertx.deployVerticle(() -> new ServerVerticle(settings),
                new DeploymentOptions().setInstances(eventLoops)), START_SECONDS);
    }

    private static void stop(Vertx vertx) {
        try {
            await(vertx.close(), STOP_SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException notClosed) {
            LOG.log(System.Logger.Level.WARNING, "Not all connections closed: {0}", notClosed.toString());
        }
    }

    private static void await(Future<?> future, int seconds)
            throws InterruptedException, ExecutionException, TimeoutException {
        future.toCompletionStage().toCompletableFuture().get(seconds, TimeUnit.SECONDS);
    }
}
