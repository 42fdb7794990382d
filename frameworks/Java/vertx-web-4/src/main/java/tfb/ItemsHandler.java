package tfb;

import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.json.jackson.DatabindCodec;
import io.vertx.ext.web.RoutingContext;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/** The first items of the data set, with totals. */
final class ItemsHandler implements Handler<RoutingContext> {

    private final List<Item> items;

    /** {@code file} is the data set, a JSON array, or null. */
    ItemsHandler(String file) {
        try {
            items = file == null ? null : List.of(DatabindCodec.mapper().readValue(new File(file), Item[].class));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public void handle(RoutingContext ctx) {
        if (items == null) {
            ctx.fail(503);
            return;
        }
        int count = IntegerParameter.ITEMS.parse(ctx.pathParam("count"));
        long multiplier = IntegerParameter.MULTIPLIER.of(ctx);
        List<Item.WithTotal> page = items.stream().limit(count).map(item -> item.times(multiplier)).toList();
        ctx.response().putHeader(HttpHeaders.VARY, HttpHeaders.ACCEPT_ENCODING);
        ctx.json(new Item.Page(page, page.size()));
    }
}
