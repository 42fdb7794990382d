package tfb;

import io.quarkus.vertx.http.runtime.filters.Filters;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.ext.web.RoutingContext;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** Adds the Server and Date headers to all responses. The date is formatted once per second. */
@ApplicationScoped
class ResponseHeaders {

    private static final int FIRST = 1000;
    private static final CharSequence SERVER = HttpHeaders.createOptimized("Quarkus");
    private static final DateTimeFormatter HTTP_DATE =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    private volatile CharSequence date;

    void register(@Observes Filters filters, Vertx vertx) {
        refreshDate();
        vertx.setPeriodic(1000, tick -> refreshDate());
        filters.register(this::add, FIRST);
    }

    private void add(RoutingContext ctx) {
        HttpServerResponse response = ctx.response();
        response.putHeader(HttpHeaders.SERVER, SERVER);
        response.putHeader(HttpHeaders.DATE, date);
        ctx.next();
    }

    private void refreshDate() {
        date = HttpHeaders.createOptimized(HTTP_DATE.format(ZonedDateTime.now(ZoneOffset.UTC)));
    }
}
