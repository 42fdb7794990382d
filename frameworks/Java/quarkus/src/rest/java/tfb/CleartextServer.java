package tfb;

import io.vertx.core.AbstractVerticle;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Promise;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.ext.web.Router;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import java.util.Optional;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** Serves the routes on H2C_PORT too, because Quarkus itself listens on only one port without TLS. */
@ApplicationScoped
class CleartextServer {

    private static final int BACKLOG = 4096;

    void start(
            @Observes Router router,
            Vertx vertx,
            @ConfigProperty(name = "quarkus.http.host") String host,
            @ConfigProperty(name = "H2C_PORT") Optional<Integer> port) {
        if (port.isPresent()) {
            HttpServerOptions options =
                    new HttpServerOptions().setHost(host).setPort(port.get()).setAcceptBacklog(BACKLOG);
            vertx.deployVerticle(() -> new Listener(router, options), new DeploymentOptions()
                    .setInstances(Runtime.getRuntime().availableProcessors()));
        }
    }

    /** A server on one event loop. */
    private static final class Listener extends AbstractVerticle {

        private final Router router;
        private final HttpServerOptions options;

        Listener(Router router, HttpServerOptions options) {
            this.router = router;
            this.options = options;
        }

        @Override
        public void start(Promise<Void> started) {
            vertx.createHttpServer(options).requestHandler(router).listen().<Void>mapEmpty().onComplete(started);
        }
    }
}
