package tfb;

import io.micronaut.http.HttpMethod;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.HttpStatus;
import io.micronaut.http.annotation.RequestFilter;
import io.micronaut.http.annotation.ServerFilter;

/** Rejects HEAD. Micronaut 5.0 would close the connection, because its responses to HEAD have no length. */
@ServerFilter(patterns = ServerFilter.MATCH_ALL_PATTERN, methods = HttpMethod.HEAD)
final class HeadFilter {

    @RequestFilter
    HttpResponse<?> reject() {
        return HttpResponse.status(HttpStatus.NOT_IMPLEMENTED).contentLength(0);
    }
}
