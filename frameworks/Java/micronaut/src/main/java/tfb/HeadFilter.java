package tfb;

import io.micronaut.http.HttpMethod;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.HttpStatus;
import io.micronaut.http.annotation.RequestFilter;
import io.micronaut.http.annotation.ServerFilter;

/** Rejects HEAD requests. Micronaut 5.0 would respond without Content-Length, and then close the connection. */
@ServerFilter(patterns = ServerFilter.MATCH_ALL_PATTERN, methods = HttpMethod.HEAD)
final class HeadFilter {

    @RequestFilter
    HttpResponse<?> reject() {
        return HttpResponse.status(HttpStatus.NOT_IMPLEMENTED).contentLength(0);
    }
}
