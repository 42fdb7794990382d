package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.List;

/**
 * The operations on orders, implemented with Hibernate ORM and wrapped in Unis. The blocking code runs on the worker
 * thread that subscribes.
 */
@ApplicationScoped
class AsyncOrders {

    private final Orders orders;

    AsyncOrders(Orders orders) {
        this.orders = orders;
    }

    Uni<OrderView> create(NewOrder wanted) {
        return Uni.createFrom().item(() -> orders.create(wanted));
    }

    Uni<List<OrderSummary>> newest(int limit) {
        return Uni.createFrom().item(() -> orders.newest(limit));
    }

    Uni<OrderView> read(long id) {
        return Uni.createFrom().item(() -> orders.read(id));
    }

    Uni<OrderView> changeCard(long id, String card) {
        return Uni.createFrom().item(() -> orders.changeCard(id, card));
    }

    Uni<Void> delete(long id) {
        return Uni.createFrom().voidItem().invoke(() -> orders.delete(id));
    }

    Uni<OrderItemView> readItem(long id, int itemId) {
        return Uni.createFrom().item(() -> orders.readItem(id, itemId));
    }

    Uni<OrderView> addItem(long id, ItemId itemId, int quantity) {
        return Uni.createFrom().item(() -> orders.addItem(id, itemId, quantity));
    }

    Uni<Void> deleteItem(long id, int itemId) {
        return Uni.createFrom().voidItem().invoke(() -> orders.deleteItem(id, itemId));
    }

    Uni<Integer> load(DataLoad load) {
        return Uni.createFrom().item(() -> orders.load(load));
    }
}
