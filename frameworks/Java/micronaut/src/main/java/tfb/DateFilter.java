package tfb;

import io.micronaut.http.HttpHeaders;
import io.micronaut.http.MutableHttpResponse;
import io.micronaut.http.annotation.ResponseFilter;
import io.micronaut.http.annotation.ServerFilter;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** Adds the Date header with a two-digit day, as RFC 9110 requires. Micronaut 5.0 itself writes "Tue, 1 Dec 2026". */
@ServerFilter(ServerFilter.MATCH_ALL_PATTERN)
final class DateFilter {

    private static final DateTimeFormatter HTTP_DATE = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH)
            .withZone(ZoneOffset.UTC);

    private volatile CachedDate cached = CachedDate.of(0);

    @ResponseFilter
    void add(MutableHttpResponse<?> response) {
        long second = System.currentTimeMillis() / 1000;
        CachedDate date = cached;
        if (date.second != second) {
            date = CachedDate.of(second);
            cached = date;
        }
        response.header(HttpHeaders.DATE, date.value);
    }

    /** A date that is formatted once per second. */
    private record CachedDate(long second, String value) {

        static CachedDate of(long second) {
            return new CachedDate(second, HTTP_DATE.format(Instant.ofEpochSecond(second)));
        }
    }
}
