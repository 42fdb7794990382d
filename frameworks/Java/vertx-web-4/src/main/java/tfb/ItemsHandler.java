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

/** Responds with the first items of the data set and their totals. */
final class ItemsHandler implements Handler<RoutingContext> {

    private final List<Item> items;

    /** @param file the data set, a JSON array of items, or null if none is configured */
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
