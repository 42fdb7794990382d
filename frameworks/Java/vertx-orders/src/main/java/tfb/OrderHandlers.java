package tfb;

import io.vertx.core.Future;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.json.JsonObject;
import io.vertx.ext.web.RoutingContext;
import java.util.List;

/** Handlers for the /orders endpoints. They validate the body before the path. */
final class OrderHandlers {

    private final OrderRepository orders;

    OrderHandlers(OrderRepository orders) {
        this.orders = orders;
    }

    Future<Order> create(RoutingContext ctx) {
        return orders.create(Request.newOrder(ctx)).onSuccess(order ->
                ctx.response().setStatusCode(201).putHeader(HttpHeaders.LOCATION, "/orders/" + order.id()));
    }

    Future<List<Order.Summary>> newest(RoutingContext ctx) {
        return orders.newest(Request.limit(ctx));
    }

    Future<JsonObject> load(RoutingContext ctx) {
        return orders.load(Request.orders(ctx)).map(created -> {
            ctx.response().setStatusCode(201);
            return JsonObject.of("created", created);
        });
    }

    Future<Order> read(RoutingContext ctx) {
        return orders.read(Request.orderId(ctx));
    }

    Future<Order> changeCard(RoutingContext ctx) {
        String card = Request.card(ctx);
        return orders.changeCard(Request.orderId(ctx), card);
    }

    Future<Void> delete(RoutingContext ctx) {
        return orders.delete(Request.orderId(ctx));
    }

    Future<List<Order.Item>> items(RoutingContext ctx) {
        return orders.read(Request.orderId(ctx)).map(Order::items);
    }

    Future<Order> addItem(RoutingContext ctx) {
        int quantity = Request.quantity(ctx);
        return orders.addItem(Request.orderId(ctx), Request.itemId(ctx), quantity)
                .onSuccess(order -> ctx.response().setStatusCode(201));
    }

    Future<Order.Item> item(RoutingContext ctx) {
        return orders.item(Request.orderId(ctx), Request.itemId(ctx));
    }

    Future<Void> deleteItem(RoutingContext ctx) {
        return orders.deleteItem(Request.orderId(ctx), Request.itemId(ctx));
    }
}
