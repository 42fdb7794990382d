package tfb;

import io.vertx.core.Handler;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.RoutingContext;
import java.util.Comparator;
import java.util.List;

/** Responds with the stored fortunes and an additional one, sorted by message. */
final class FortuneHandler implements Handler<RoutingContext> {

    private static final CharSequence TEXT_HTML = HttpHeaders.createOptimized("text/html; charset=utf-8");
    private static final Comparator<Fortune> BY_MESSAGE = Comparator.comparing(Fortune::message);

    private final FortuneRepository fortunes;
    private final FortunesPageRenderer template = FortunesPageRenderer.of();

    FortuneHandler(FortuneRepository fortunes) {
        this.fortunes = fortunes;
    }

    @Override
    public void handle(RoutingContext ctx) {
        List<Fortune> all = fortunes.all();
        all.add(new Fortune(0, "Additional fortune added at request time."));
        all.sort(BY_MESSAGE);
        Buffer page = template.write(new FortunesPage(all), new BufferOutput()).buffer();
        ctx.response().putHeader(HttpHeaders.CONTENT_TYPE, TEXT_HTML).end(page);
    }
}
