package tfb;

import io.vertx.core.MultiMap;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.handler.FileSystemAccess;
import io.vertx.ext.web.handler.StaticHandler;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** Serves the files in STATIC_DIR with Vert.x, because Quarkus's own setting fixes the folder at build time. */
@ApplicationScoped
class StaticFiles {

    /** How long cached file metadata (size and modification time) may be stale. */
    private static final long FILE_MILLIS = 500;

    private static final Pattern ONE_DIGIT_DAY = Pattern.compile(", (?=\\d )");

    void register(@Observes Router router, @ConfigProperty(name = "STATIC_DIR") Optional<String> folder) {
        folder.ifPresent(path -> router.get("/static/*").handler(ctx -> {
            MultiMap headers = ctx.response().headers();
            ctx.addHeadersEndHandler(end -> List.of(HttpHeaders.DATE, HttpHeaders.LAST_MODIFIED)
                    .forEach(name -> padDay(headers, name)));
            ctx.next();
        }).handler(StaticHandler.create(FileSystemAccess.ROOT, path)
                .setFilesReadOnly(false)
                .setCacheEntryTimeout(FILE_MILLIS)));
    }

    /** Writes the day with two digits, as RFC 9110 requires. The static handler writes "Tue, 1 Dec 2026". */
    private static void padDay(MultiMap headers, CharSequence name) {
        String value = headers.get(name);
        if (value != null) {
            headers.set(name, ONE_DIGIT_DAY.matcher(value).replaceFirst(", 0"));
        }
    }
}
