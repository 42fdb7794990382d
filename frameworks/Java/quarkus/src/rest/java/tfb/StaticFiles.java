package tfb;

import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.handler.FileSystemAccess;
import io.vertx.ext.web.handler.StaticHandler;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import java.util.Optional;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** Serves the files in STATIC_DIR with Vert.x, because Quarkus's own setting fixes the folder at build time. */
@ApplicationScoped
class StaticFiles {

    /** How long cached file metadata (size and modification time) may be stale. */
    private static final long FILE_MILLIS = 500;

    void register(@Observes Router router, @ConfigProperty(name = "STATIC_DIR") Optional<String> folder) {
        folder.ifPresent(path -> router.get("/static/*").handler(StaticHandler.create(FileSystemAccess.ROOT, path)
                .setFilesReadOnly(false)
                .setCacheEntryTimeout(FILE_MILLIS)));
    }
}
