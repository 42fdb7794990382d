package tfb;

import io.undertow.Handlers;
import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.HttpHandler;
import io.undertow.server.handlers.GracefulShutdownHandler;
import io.undertow.servlet.api.DeploymentInfo;
import io.undertow.util.Headers;
import java.util.List;
import javax.sql.DataSource;
import org.jboss.resteasy.core.ResteasyDeploymentImpl;
import org.jboss.resteasy.plugins.server.undertow.UndertowJaxrsServer;
import org.jboss.resteasy.spi.ResteasyDeployment;
import org.xnio.Options;

/** The JAX-RS resources on RESTEasy's servlet in Undertow: I/O threads parse, a worker thread answers each request. */
final class Server {

    private static final int MAX_HEADER_BYTES = 16 * 1024;
    private static final int BACKLOG = 4096;
    private static final long STOP_MILLIS = 3000;

    private final UndertowJaxrsServer undertow = new UndertowJaxrsServer();
    private GracefulShutdownHandler requests;

    private Server() {}

    static Server start(Settings settings, DataSource database, int workers) {
        Server server = new Server();
        server.undertow.deploy(server.deployment(database));
        server.undertow.start(Undertow.builder()
                .addHttpListener(settings.port(), settings.host())
                .setIoThreads(Runtime.getRuntime().availableProcessors())
                .setWorkerThreads(workers)
                .setSocketOption(Options.BACKLOG, BACKLOG)
                .setServerOption(UndertowOptions.MAX_HEADER_SIZE, MAX_HEADER_BYTES));
        return server;
    }

    /** Requests under way are answered, new ones refused with 503. */
    void stop() {
        requests.shutdown();
        try {
            requests.awaitShutdown(STOP_MILLIS);
        } catch (InterruptedException stopNow) {
            Thread.currentThread().interrupt();
        }
        undertow.stop();
    }

    private DeploymentInfo deployment(DataSource database) {
        ResteasyDeployment resteasy = new ResteasyDeploymentImpl();
        resteasy.setResources(List.of(
                new HelloResource(),
                new WorldResource(new WorldRepository(database)),
                new FortuneResource(new FortuneRepository(database))));
        resteasy.setProviders(List.of(new FortunesPageWriter(), new DatabaseFailureMapper()));
        return undertow.undertowDeployment(resteasy, "/")
                .setClassLoader(Server.class.getClassLoader())
                .setDeploymentName("tfb")
                .setContextPath("/")
                .addInitialHandlerChainWrapper(this::outermost);
    }

    private HttpHandler outermost(HttpHandler servlets) {
        requests = Handlers.gracefulShutdown(servlets);
        return Handlers.header(requests, Headers.SERVER_STRING, "Undertow");
    }
}
