package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.persistence.LockModeType;
import java.util.List;
import org.hibernate.reactive.mutiny.Mutiny.Session;

/**
 * The operations on orders, implemented with Hibernate Reactive. Changes lock the order's row before they read the
 * items.
 */
@ApplicationScoped
class AsyncOrders {

    private final Sessions sessions;

    AsyncOrders(Sessions sessions) {
        this.sessions = sessions;
    }

    Uni<OrderView> create(NewOrder wanted) {
        return sessions.withTransaction(session -> session.find(Customer.class, wanted.customerId())
                .flatMap(customer -> items(session, wanted.itemIds()).map(items -> wanted.toOrder(customer, items)))
                .call(session::persist)
                .map(OrderView::of));
    }

    Uni<List<OrderSummary>> newest(int limit) {
        return sessions.withSession(session ->
                session.createSelectionQuery(Queries.NEWEST, OrderSummary.class).setMaxResults(limit).getResultList());
    }

    Uni<OrderView> read(long id) {
        return sessions.withSession(session -> session.createSelectionQuery(Queries.ORDER, Order.class)
                .setParameter("id", id)
                .getSingleResultOrNull()
                .onItem().ifNull().failWith(Problems::unknownOrder)
                .map(OrderView::of));
    }

    Uni<OrderView> changeCard(long id, String card) {
        return sessions.withTransaction(session -> locked(session, id)
                .invoke(order -> order.setCard(card))
                .map(OrderView::of));
    }

    Uni<Void> delete(long id) {
        return sessions.withTransaction(session -> session.createMutationQuery(Queries.DELETE)
                .setParameter("id", id)
                .executeUpdate()
                .map(deleted -> deleted == 0 ? null : deleted)
                .onItem().ifNull().failWith(Problems::unknownOrder)
                .replaceWithVoid());
    }

    Uni<OrderItemView> readItem(long id, int itemId) {
        return sessions.withSession(session -> session.createSelectionQuery(Queries.ORDER_ITEM, OrderItemView.class)
                .setParameter("id", id)
                .setParameter("itemId", itemId)
                .getSingleResultOrNull()
                .onItem().ifNull().failWith(() -> Problems.notInOrder(itemId)));
    }

    Uni<OrderView> addItem(long id, ItemId itemId, int quantity) {
        return sessions.withTransaction(session -> locked(session, id)
                .call(order -> session.find(Item.class, itemId.possible().value())
                        .invoke(item -> order.addOnce(item, itemId.value(), quantity)))
                .map(OrderView::of));
    }

    Uni<Void> deleteItem(long id, int itemId) {
        return sessions.withTransaction(session ->
                locked(session, id).invoke(order -> order.remove(itemId)).replaceWithVoid());
    }

    Uni<Integer> load(DataLoad load) {
        return sessions.withTransaction(session -> items(session, load.ids())
                .map(items -> load.toOrders(id -> session.getReference(Customer.class, id), items))
                .flatMap(orders -> session.persistAll(orders.toArray()))
                .replaceWith(load.orders()));
    }

    private static Uni<List<Item>> items(Session session, List<Integer> ids) {
        return session.createSelectionQuery(Queries.ITEMS, Item.class).setParameter("ids", ids).getResultList();
    }

    /** Locks an order and reads its items. */
    private static Uni<Order> locked(Session session, long id) {
        return session.find(Order.class, id, LockModeType.PESSIMISTIC_WRITE)
                .onItem().ifNull().failWith(Problems::unknownOrder)
                .call(order -> session.fetch(order.getItems()));
    }
}
