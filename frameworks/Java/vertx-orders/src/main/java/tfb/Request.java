package tfb;

import io.vertx.core.buffer.Buffer;
import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.HttpException;
import java.util.HashSet;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.regex.Pattern;

/** Parses requests. Invalid bodies fail with 400, and invalid path segments with 404. */
final class Request {

    private static final Pattern CARD = Pattern.compile("[0-9]{12,19}");
    private static final Pattern ID = Pattern.compile("[1-9][0-9]{0,18}");
    private static final Pattern ROWS = Pattern.compile("[0-9]{1,3}");
    private static final int MAX_ITEMS = 20;
    private static final int MAX_QUANTITY = 100;
    private static final int MAX_LOADED = 1000;
    private static final int MAX_LIMIT = 100;
    private static final String DEFAULT_LIMIT = "20";

    private Request() {
    }

    static NewOrder newOrder(RoutingContext ctx) {
        JsonObject body = body(ctx);
        if (!(body.getValue("items") instanceof JsonArray items) || items.isEmpty() || items.size() > MAX_ITEMS) {
            throw bad("items: expected 1 to " + MAX_ITEMS + " items");
        }
        NewOrder order = new NewOrder(integer(body, "customerId", id -> true, "an integer"), card(body),
                items.stream().map(Request::item).toList());
        if (new HashSet<>(order.itemIds()).size() < items.size()) {
            throw bad("items: an item occurs twice");
        }
        return order;
    }

    static String card(RoutingContext ctx) {
        return card(body(ctx));
    }

    static int quantity(RoutingContext ctx) {
        return quantity(body(ctx));
    }

    /** Returns the number of orders to create, from the body of a data load. */
    static int orders(RoutingContext ctx) {
        return integer(body(ctx), "orders", within(MAX_LOADED), "1 to " + MAX_LOADED);
    }

    static int limit(RoutingContext ctx) {
        List<String> given = ctx.queryParam("limit");
        String text = given.isEmpty() ? DEFAULT_LIMIT : given.getFirst();
        int rows = ROWS.matcher(text).matches() ? Integer.parseInt(text) : 0;
        if (!within(MAX_LIMIT).test(rows)) {
            throw bad("limit: expected 1 to " + MAX_LIMIT);
        }
        return rows;
    }

    static long orderId(RoutingContext ctx) {
        return id(ctx.pathParam("id"), Long.MAX_VALUE, "order");
    }

    static int itemId(RoutingContext ctx) {
        return (int) id(ctx.pathParam("itemId"), Integer.MAX_VALUE, "item");
    }

    private static long id(String text, long most, String what) {
        try {
            if (ID.matcher(text).matches() && Long.parseLong(text) <= most) {
                return Long.parseLong(text);
            }
        } catch (NumberFormatException beyond64Bits) {
            // The number is too large for an id.
        }
        throw new HttpException(404, "There is no such " + what);
    }

    private static NewOrder.Item item(Object element) {
        if (element instanceof JsonObject item) {
            return new NewOrder.Item(integer(item, "itemId", id -> true, "an integer"), quantity(item));
        }
        throw bad("items: expected objects");
    }

    private static int quantity(JsonObject body) {
        return integer(body, "quantity", within(MAX_QUANTITY), "1 to " + MAX_QUANTITY);
    }

    private static String card(JsonObject body) {
        if (body.getValue("card") instanceof String card && CARD.matcher(card).matches()) {
            return card;
        }
        throw bad("card: expected 12 to 19 digits");
    }

    private static int integer(JsonObject body, String name, IntPredicate allowed, String expected) {
        if (body.getValue(name) instanceof Integer value && allowed.test(value)) {
            return value;
        }
        throw bad(name + ": expected " + expected);
    }

    private static IntPredicate within(int most) {
        return value -> value >= 1 && value <= most;
    }

    private static JsonObject body(RoutingContext ctx) {
        Buffer body = ctx.body().buffer();
        try {
            if (body != null && body.toJsonValue() instanceof JsonObject object) {
                return object;
            }
        } catch (DecodeException noJson) {
            throw bad("The body is not valid JSON");
        }
        throw bad("The body is not a JSON object");
    }

    private static HttpException bad(String detail) {
        return new HttpException(400, detail);
    }
}
