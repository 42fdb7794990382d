package tfb;

import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.ServerResponseHeaders;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.regex.Pattern;

/** Dates with two-digit days, as RFC 9110 requires. Helidon 4.5 itself writes "Tue, 1 Dec 2026". */
final class HttpDates {

    private static final DateTimeFormatter HTTP_DATE = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH)
            .withZone(ZoneOffset.UTC);
    private static final Pattern ONE_DIGIT_DAY = Pattern.compile(", (?=\\d )");

    private static volatile CachedDate cached = CachedDate.of(0);

    private HttpDates() {}

    /** Returns the Date header, which is formatted once per second. */
    static Header now() {
        long second = System.currentTimeMillis() / 1000;
        CachedDate date = cached;
        if (date.second != second) {
            date = CachedDate.of(second);
            cached = date;
        }
        return date.header;
    }

    /** Writes the day in the Last-Modified header, if there is one, with two digits. */
    static void correctLastModified(ServerResponseHeaders headers) {
        if (headers.contains(HeaderNames.LAST_MODIFIED)) {
            String value = headers.get(HeaderNames.LAST_MODIFIED).get();
            headers.set(HeaderNames.LAST_MODIFIED, ONE_DIGIT_DAY.matcher(value).replaceFirst(", 0"));
        }
    }

    private record CachedDate(long second, Header header) {

        static CachedDate of(long second) {
            String value = HTTP_DATE.format(Instant.ofEpochSecond(second));
            return new CachedDate(second, HeaderValues.createCached(HeaderNames.DATE, value));
        }
    }
}
