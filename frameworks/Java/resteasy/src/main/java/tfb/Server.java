package tfb;

import io.undertow.Handlers;
import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.DefaultByteBufferPool;
import io.undertow.server.HttpHandler;
import io.undertow.server.handlers.GracefulShutdownHandler;
import io.undertow.server.handlers.resource.PathResourceManager;
import io.undertow.server.handlers.resource.PreCompressedResourceSupplier;
import io.undertow.server.handlers.resource.ResourceHandler;
import io.undertow.server.handlers.resource.ResourceManager;
import io.undertow.servlet.Servlets;
import io.undertow.servlet.api.DeploymentInfo;
import io.undertow.servlet.api.ServletInfo;
import io.undertow.util.Headers;
import io.undertow.util.MimeMappings;
import io.undertow.util.SameThreadExecutor;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.sql.DataSource;
import org.jboss.resteasy.plugins.interceptors.GZIPEncodingInterceptor;
import org.jboss.resteasy.plugins.interceptors.ServerContentEncodingAnnotationFeature;
import org.jboss.resteasy.plugins.server.undertow.UndertowJaxrsServer;
import org.jboss.resteasy.spi.ResteasyDeployment;
import org.xnio.Options;

/**
 * Runs RESTEasy's servlet in Undertow. I/O threads parse requests, and worker threads handle them. Optionally, I/O
 * threads also handle the requests that never block.
 */
final class Server {

    private static final int MAX_HEADER_BYTES = 16 * 1024;
    private static final int BACKLOG = 4096;
    private static final int BUFFER_BYTES = 16 * 1024;
    private static final int POOLED_BUFFERS = 1024;
    private static final int BUFFERS_OF_A_THREAD = 16;
    private static final long STOP_MILLIS = 3000;

    private final UndertowJaxrsServer undertow = new UndertowJaxrsServer();
    private GracefulShutdownHandler requests;

    private Server() {}

    static Server start(Settings settings, DataSource database, int workers, boolean ioThread) {
        Server server = new Server();
        DeploymentInfo deployment = server.deployment(settings, database);
        if (ioThread) {
            deployment.addServlet(withoutWorker(deployment.getServlets().get("ResteasyServlet")));
        }
        server.undertow.deploy(deployment);
        server.undertow.start(listeners(settings)
                .setIoThreads(Runtime.getRuntime().availableProcessors())
                .setWorkerThreads(workers)
                .setSocketOption(Options.BACKLOG, BACKLOG)
                // Undertow's default pool keeps only four buffers per thread, and allocates additional buffers for each
                // use.
                .setByteBufferPool(new DefaultByteBufferPool(true, BUFFER_BYTES, POOLED_BUFFERS, BUFFERS_OF_A_THREAD))
                .setServerOption(UndertowOptions.MAX_HEADER_SIZE, MAX_HEADER_BYTES)
                // HTTP/1.1 connections are persistent by default, so the keep-alive header is unnecessary.
                .setServerOption(UndertowOptions.ALWAYS_SET_KEEP_ALIVE, false));
        return server;
    }

    private static Undertow.Builder listeners(Settings settings) {
        Undertow.Builder builder = Undertow.builder().addHttpListener(settings.port(), settings.host());
        if (settings.cleartextPort() != 0) {
            builder.addHttpListener(settings.cleartextPort(), settings.host());
        }
        if (settings.httpsPort() != 0) {
            builder.addHttpsListener(
                    settings.httpsPort(), settings.host(), Tls.context(settings.certificate(), settings.key()));
        }
        return builder.setServerOption(UndertowOptions.ENABLE_HTTP2, true);
    }

    /** Stops the server. Requests in progress are completed, and new requests are rejected with 503. */
    void stop() {
        requests.shutdown();
        try {
            requests.awaitShutdown(STOP_MILLIS);
        } catch (InterruptedException stopNow) {
            Thread.currentThread().interrupt();
        }
        undertow.stop();
    }

    private DeploymentInfo deployment(Settings settings, DataSource database) {
        WorldRepository worlds = new WorldRepository(database);
        ResteasyDeployment resteasy = undertow.getDeployment();
        resteasy.setResources(List.of(
                new HelloResource(),
                new WorldResource(worlds, new WorldCache(worlds)),
                new FortuneResource(new FortuneRepository(database)),
                new ItemResource(settings.dataSet()),
                new UploadResource(),
                waiting(settings.upstreamUrl())));
        resteasy.getProviders().addAll(List.of(new FortunesPageWriter(), new DatabaseFailureMapper()));
        if (settings.dataSet() != null) {
            // Without a data set, the interceptor would run for each response, but never compress one.
            resteasy.getProviders().addAll(
                    List.of(new ServerContentEncodingAnnotationFeature(), new GZIPEncodingInterceptor()));
        }
        return undertow.undertowDeployment(resteasy, "/")
                .setSecurityDisabled(true)
                .setClassLoader(Server.class.getClassLoader())
                .setDeploymentName("tfb")
                .setContextPath("/")
                .addInitialHandlerChainWrapper(servlets -> outermost(withFiles(servlets, settings.folder())));
    }

    /** Creates a servlet for resources that never block; it runs on the I/O thread that reads the request. */
    private static ServletInfo withoutWorker(ServletInfo resteasy) {
        return Servlets.servlet("NonBlocking", resteasy.getServletClass())
                .setLoadOnStartup(1)
                .setExecutor(SameThreadExecutor.INSTANCE)
                .addMappings("/json", "/plaintext");
    }

    private static WaitingResource waiting(String upstreamUrl) {
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
        return new WaitingResource(threads, upstreamUrl == null ? null : new Upstream(upstreamUrl, threads));
    }

    /** Serves the folder's files, or the .br or .gz file beside a file if the client accepts that encoding. */
    private static HttpHandler withFiles(HttpHandler servlets, String folder) {
        if (folder == null) {
            return servlets;
        }
        ResourceManager files = PathResourceManager.builder().setBase(Path.of(folder)).build();
        ResourceHandler handler = new ResourceHandler(
                new PreCompressedResourceSupplier(files).addEncoding("br", ".br").addEncoding("gzip", ".gz"));
        // Undertow maps this extension to an obsolete media type.
        handler.setMimeMappings(MimeMappings.builder().addMapping("woff2", "font/woff2").build());
        return Handlers.path(servlets).addPrefixPath(
                "/static", Handlers.header(handler, Headers.VARY_STRING, Headers.ACCEPT_ENCODING_STRING));
    }

    private HttpHandler outermost(HttpHandler handler) {
        requests = Handlers.gracefulShutdown(handler);
        return Handlers.header(requests, Headers.SERVER_STRING, "Undertow");
    }
}
