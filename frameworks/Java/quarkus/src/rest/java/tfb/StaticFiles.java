package tfb;

import io.vertx.core.MultiMap;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.handler.FileSystemAccess;
import io.vertx.ext.web.handler.StaticHandler;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
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
            String date = headers.get(HttpHeaders.DATE); // set by ResponseHeaders
            ctx.addHeadersEndHandler(end -> correctDates(headers, date));
            ctx.next();
        }).handler(StaticHandler.create(FileSystemAccess.ROOT, path)
                .setFilesReadOnly(false)
                .setCacheEntryTimeout(FILE_MILLIS)));
    }

    /** Writes days with two digits, as RFC 9110 requires. The static handler writes "Tue, 1 Dec 2026". */
    private static void correctDates(MultiMap headers, String date) {
        headers.set(HttpHeaders.DATE, date);
        String modified = headers.get(HttpHeaders.LAST_MODIFIED);
        if (modified != null) {
            headers.set(HttpHeaders.LAST_MODIFIED, ONE_DIGIT_DAY.matcher(modified).replaceFirst(", 0"));
        }
    }
}
